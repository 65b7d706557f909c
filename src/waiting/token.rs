//! Admission tokens: signed, bound to a buyer and an event, checked without asking anybody.

use crate::config::Secret;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use parterre_entity::EventId;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Claims {
    aud: String,
    sub: String,
    event: EventId,
    /// The admission's id.
    jti: String,
    /// Milliseconds of Unix time: a token lasts little more than a minute.
    until: i64,
}

const AUDIENCE: &str = "parterre:admission";

/// What a token is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Good until it runs out.
    Valid {
        /// The admission's id.
        admission: String,
    },
    /// Ours, for this buyer and event, and too old.
    RanOut,
    /// Forged, or somebody else's, or for another event.
    Wrong,
}

/// Makes and checks tokens.
#[derive(Clone)]
pub(super) struct Signer {
    sign: EncodingKey,
    check: DecodingKey,
    validation: Validation,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signer").finish_non_exhaustive()
    }
}

impl Signer {
    pub(super) fn new(secret: &Secret) -> Result<Self, jsonwebtoken::errors::Error> {
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_audience(&[AUDIENCE]);
        validation.set_required_spec_claims(&["aud", "sub"]);
        validation.validate_exp = false;
        let bytes = secret.expose().as_bytes();
        Ok(Self { sign: EncodingKey::from_secret(bytes)?, check: DecodingKey::from_secret(bytes)?, validation })
    }

    /// A token of an admission.
    pub(super) fn issue(
        &self,
        (event, buyer): (EventId, &str),
        (admission, until_ms): (&str, i64),
    ) -> Result<String, jsonwebtoken::errors::Error> {
        let claims = Claims {
            aud: AUDIENCE.to_owned(),
            sub: buyer.to_owned(),
            event,
            jti: admission.to_owned(),
            until: until_ms,
        };
        encode(&Header::new(Algorithm::HS256), &claims, &self.sign)
    }

    /// What a token is worth to a buyer at an event.
    pub(super) fn judge(&self, token: &str, (event, buyer): (EventId, &str), now_ms: i64) -> Verdict {
        match decode::<Claims>(token, &self.check, &self.validation) {
            Ok(token) if token.claims.sub == buyer && token.claims.event == event => {
                if now_ms < token.claims.until {
                    Verdict::Valid { admission: token.claims.jti }
                } else {
                    Verdict::RanOut
                }
            }
            Ok(_) | Err(_) => Verdict::Wrong,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_for_one_buyer_one_event_and_a_short_while() {
        crate::install_crypto();
        let signer = Signer::new(&Secret::new("one")).unwrap();
        let (event, other) = (EventId::new(), EventId::new());
        let token = signer.issue((event, "mina"), ("a1", 1_000)).unwrap();
        let judge = |event, buyer, now| signer.judge(&token, (event, buyer), now);
        assert_eq!(judge(event, "mina", 999), Verdict::Valid { admission: "a1".to_owned() });
        assert_eq!(judge(event, "mina", 1_000), Verdict::RanOut);
        assert_eq!(judge(event, "leo", 999), Verdict::Wrong);
        assert_eq!(judge(other, "mina", 999), Verdict::Wrong);
        let forger = Signer::new(&Secret::new("two")).unwrap();
        let forged = forger.issue((event, "mina"), ("a1", 1_000)).unwrap();
        assert_eq!(signer.judge(&forged, (event, "mina"), 999), Verdict::Wrong);
        let unsigned = token.rsplit_once('.').unwrap().0.to_owned() + ".";
        assert_eq!(signer.judge(&unsigned, (event, "mina"), 999), Verdict::Wrong);
    }
}
