//! The request to stop: the interrupt key, or `--duration`.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::commands::interrupt::{self, Request};
use crate::commands::say;

/// Waits for the request to stop.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    /// The requests so far.
    requests: watch::Receiver<u32>,
    until: Option<Instant>,
}

impl Stop {
    /// Listens to the interrupt key and other signals. The first request is for an orderly end. The
    /// request with the number `at_once` ends the program there and then.
    pub(crate) fn on_interrupt(at_once: u32) -> Self {
        let (request, requests) = watch::channel(0);
        interrupt::on_request("without a summary", move |requested| {
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

    /// Whether somebody requested the stop.
    pub(crate) fn is_requested(&self) -> bool {
        *self.requests.borrow() > 0
    }

    /// Returns at the request to stop without waiting for anything.
    pub(crate) async fn at_once(mut self) {
        self.requested(2).await;
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
