//! What is made of a move for its watchers: made by the first who needs it, shared with all who asked the same.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

/// Texts by what was asked for and the version they start from.
#[derive(Debug, Default)]
pub struct Shared {
    made: Mutex<HashMap<(Wording, String), Text>>,
}

/// A text, once it is made.
type Text = Arc<OnceCell<Arc<str>>>;

/// Names what was asked for: equal means the same words with the same values.
pub type Wording = [u8; 32];

/// Texts of one move: whoever asks in yet another way is answered alone.
const SHARED_MAX: usize = 64;

impl Shared {
    /// The text for those who asked this and had this version before.
    pub async fn get(&self, asked: Wording, from: &str, make: impl Future<Output = Arc<str>>) -> Arc<str> {
        let cell = {
            let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            let full = made.len() >= SHARED_MAX;
            match made.entry((asked, from.to_owned())) {
                Entry::Occupied(made) => Some(Arc::clone(made.get())),
                Entry::Vacant(_) if full => None,
                Entry::Vacant(new) => Some(Arc::clone(new.insert(Text::default()))),
            }
        };
        match cell {
            Some(cell) => cell.get_or_init(|| make).await.clone(),
            None => make.await,
        }
    }
}
