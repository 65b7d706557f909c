//! What each payment method of the simulator does. Pure.

/// A step of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Create,
    Capture,
    Cancel,
    Refund,
}

/// What happens on the provider's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The step is done.
    Done,
    /// The card is declined, or the money can't be collected.
    Declined,
    /// The buyer has to act.
    AskBuyer,
    /// Money comes by itself after so many milliseconds.
    CollectsAfter(i64),
    /// Nothing is done.
    Nothing,
}

/// What the caller gets to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// The object.
    Normal,
    /// The object after so many milliseconds.
    After(u64),
    /// The connection drops.
    Dropped,
    /// Nothing, for longer than anyone waits.
    Never,
    /// A 500 that is kept under the key.
    StoredError,
}

/// Which webhooks go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Webhooks {
    /// One for each change.
    Once,
    /// None.
    None,
    /// Each three times.
    Thrice,
    /// After so many milliseconds: later changes overtake earlier ones.
    Reordered,
    /// After two seconds.
    Late,
}

/// One step of one payment method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Behaviour {
    pub(super) effect: Effect,
    pub(super) reply: Reply,
    pub(super) webhooks: Webhooks,
}

/// What a payment method does at a step, `first_key` telling whether this is the first key used for it.
pub(super) fn behaviour(method: &str, step: Step, first_key: bool) -> Behaviour {
    let plain = Behaviour { effect: Effect::Done, reply: Reply::Normal, webhooks: Webhooks::Once };
    let on_money = matches!(step, Step::Create | Step::Capture);
    if let Some(ms) = method.strip_prefix("pm_sim_slow_") {
        return Behaviour { reply: Reply::After(ms.parse().unwrap_or(1_000)), ..plain };
    }
    if let Some(ms) = method.strip_prefix("pm_sim_collects_at_once_") {
        let effect =
            if step == Step::Create { Effect::CollectsAfter(ms.parse().unwrap_or(1_000)) } else { Effect::Done };
        return Behaviour { effect, ..plain };
    }
    match method {
        "pm_card_chargeDeclined" if step == Step::Create => Behaviour { effect: Effect::Declined, ..plain },
        "pm_sim_capture_fails" if step == Step::Capture => Behaviour { effect: Effect::Declined, ..plain },
        "pm_sim_lost_reply" if on_money => Behaviour { reply: Reply::Dropped, ..plain },
        "pm_sim_500_then_ok" if on_money && first_key => {
            Behaviour { effect: Effect::Nothing, reply: Reply::StoredError, webhooks: Webhooks::None }
        }
        "pm_sim_500_but_done" if on_money && first_key => Behaviour { reply: Reply::StoredError, ..plain },
        "pm_sim_webhook_only" if on_money => Behaviour { reply: Reply::Never, webhooks: Webhooks::Late, ..plain },
        "pm_sim_silent" if on_money => Behaviour { reply: Reply::Never, webhooks: Webhooks::None, ..plain },
        "pm_sim_duplicate_webhooks" => Behaviour { webhooks: Webhooks::Thrice, ..plain },
        "pm_sim_reordered_webhooks" => Behaviour { webhooks: Webhooks::Reordered, ..plain },
        "pm_sim_requires_action" | "pm_sim_action_abandoned" if step == Step::Create => {
            Behaviour { effect: Effect::AskBuyer, ..plain }
        }
        _ => plain,
    }
}
