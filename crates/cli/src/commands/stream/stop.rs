//! The request to stop: the interrupt key, or `--duration`.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::commands::say;

/// Waits for the request to stop.
#[derive(Debug)]
pub(crate) struct Stop {
    presses: watch::Receiver<u32>,
    until: Option<Instant>,
}

impl Stop {
    /// Listens to the interrupt key. The first press requests an orderly end, the second ends the
    /// program at once.
    pub(crate) fn on_interrupt() -> Self {
        let (press, presses) = watch::channel(0);
        let handler = move || {
            press.send_modify(|count| *count += 1);
            match *press.borrow() {
                1 => say("\ninterrupted: finishing in good order; interrupt again to end at once"),
                _ => std::process::exit(130),
            }
        };
        if let Err(error) = ctrlc::set_handler(handler) {
            say(&format!(
                "warning: Ctrl-C ends the program without a summary: {error}"
            ));
        }
        Self {
            presses,
            until: None,
        }
    }

    /// Stops after this duration, too.
    pub(crate) fn after(mut self, duration: Option<Duration>) -> Self {
        self.until = duration.and_then(|duration| Instant::now().checked_add(duration));
        self
    }

    /// Returns at the request to stop.
    pub(crate) async fn wanted(mut self) {
        let pressed = async {
            if self.presses.wait_for(|count| *count > 0).await.is_err() {
                // Without a handler, the key ends the program.
                std::future::pending::<()>().await;
            }
        };
        match self.until {
            Some(until) => tokio::select! {
                () = pressed => {}
                () = sleep_until(until) => {}
            },
            None => pressed.await,
        }
    }
}
