//! What is made of a move for its watchers: made by the first who needs it, shared with all who asked the same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

/// Texts by what was asked for and the version they start from.
#[derive(Debug, Default)]
pub struct Shared {
    made: Mutex<HashMap<(Asked, String), Text>>,
}

/// A text, once it is made.
type Text = Arc<OnceCell<Arc<str>>>;

/// Names what was asked for: equal means the same words with the same values.
pub type Asked = [u8; 32];

impl Shared {
    /// The text for those who asked this and had this version before.
    pub async fn get(&self, asked: Asked, from: &str, make: impl Future<Output = Arc<str>>) -> Arc<str> {
        let cell = {
            let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(made.entry((asked, from.to_owned())).or_default())
        };
        cell.get_or_init(|| make).await.clone()
    }
}
