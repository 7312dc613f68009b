//! The request to stop: the interrupt key, or `--duration`.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::interrupt::{self, Request};
use crate::say;

/// The additional time after `linger` for an orderly end, which delivers sections that have
/// arrived.
const MARGIN: Duration = Duration::from_millis(250);

/// Waits for the request to stop.
#[derive(Clone, Debug)]
pub struct Stop {
    /// The number of requests so far.
    requests: watch::Receiver<u32>,
    /// How long an orderly end may take.
    linger: Duration,
    until: Option<Instant>,
}

impl Stop {
    /// Handles the interrupt key and other signals. The first request starts an orderly end.
    /// Request number `at_once` ends the program immediately. The program also ends shortly after
    /// `linger` has passed since the first request.
    pub fn on_interrupt(at_once: u32, linger: Duration) -> Self {
        let (request, requests) = watch::channel(0);
        interrupt::on_request("without a summary", Some(linger), move |requested| {
            request.send_modify(|count| *count += 1);
            match requested {
                Request::First => {
                    say("\ninterrupted: finishing in good order; interrupt again to end at once");
                }
                Request::Again if *request.borrow() >= at_once => interrupt::exit(),
                Request::Again => {}
            }
        });
        Self {
            requests,
            linger,
            until: None,
        }
    }

    /// Also stops after this duration.
    pub fn after(mut self, duration: Option<Duration>) -> Self {
        self.until = duration.and_then(|duration| Instant::now().checked_add(duration));
        self
    }

    /// Returns when a stop is requested.
    pub async fn wanted(mut self) {
        let until = self.until;
        let requested = self.requested(1);
        match until {
            Some(until) => tokio::select! {
                () = requested => {}
                () = sleep_until(until) => {}
            },
            None => requested.await,
        }
    }

    /// Whether a stop was requested.
    pub fn is_requested(&self) -> bool {
        *self.requests.borrow() > 0
    }

    /// Returns when an immediate stop is requested, or when the time for an orderly end has passed.
    pub async fn at_once(mut self) {
        let mut first = self.clone();
        let is_late = async {
            first.requested(1).await;
            sleep(first.linger + MARGIN).await;
        };
        tokio::select! {
            () = self.requested(2) => {}
            () = is_late => {}
        }
    }

    /// Whether the stop was requested more than once.
    pub fn was_repeated(&self) -> bool {
        *self.requests.borrow() > 1
    }

    async fn requested(&mut self, times: u32) {
        if self
            .requests
            .wait_for(|count| *count >= times)
            .await
            .is_err()
        {
            // Without a handler, the key ends the program.
            std::future::pending::<()>().await;
        }
    }
}
