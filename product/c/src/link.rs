//! A connection, from the call on.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use comity::uri::Uri;
use comity::{Config, Settings};
use comity_media::LAYOUT_FEATURE;
use comity_stream::{Dialer, Error, Observer, Reconnect};
use tokio::time::timeout;

use crate::failure::Failure;
use crate::open::{Made, Open, Socket, lock, runtime};
use crate::readiness::{Direction, Readiness};

/// A connection, from the call on.
pub(crate) struct Link {
    pub(crate) readiness: Arc<Readiness>,
    settings: Settings,
    opened: OnceLock<Result<Open, Failure>>,
}

impl Link {
    /// An open connection.
    pub(crate) fn accepted(
        made: Made,
        settings: Settings,
        is_nonblocking: bool,
    ) -> io::Result<Arc<Self>> {
        let link = Self::new(settings, is_nonblocking)?;
        link.on_opened(Ok(made));
        Ok(link)
    }

    pub(crate) fn new(settings: Settings, is_nonblocking: bool) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            readiness: Readiness::new(is_nonblocking)?,
            settings,
            opened: OnceLock::new(),
        }))
    }

    pub(crate) fn on_opened(&self, made: Result<Made, Failure>) {
        let readiness = &self.readiness;
        let opened = made.map(|made| Open::new(made, &self.settings, readiness));
        let has_failed = opened.is_err();
        // It is opened once.
        let _ = self.opened.set(opened);
        readiness.set(Direction::Out, true);
        if has_failed {
            readiness.set(Direction::In, true);
        }
    }

    /// The connection; `None` while it is being made.
    pub(crate) fn open(&self) -> Result<Option<&Open>, Failure> {
        match self.opened.get() {
            None => Ok(None),
            Some(Ok(open)) => Ok(Some(open)),
            Some(Err(failure)) => Err(failure.clone()),
        }
    }

    /// # Errors
    ///
    /// `ENOTCONN`, and those of a failed call.
    pub(crate) fn connected(&self) -> Result<&Open, Failure> {
        let text = "the call is not answered yet; wait until the descriptor is writable";
        self.open()?
            .ok_or_else(|| Failure::new(libc::ENOTCONN, text))
    }

    /// Attempts something with the connection until it is done, or once if waiting is not wanted.
    pub(crate) fn until<T>(
        &self,
        direction: Direction,
        dont_wait: bool,
        mut attempt: impl FnMut(&Open) -> Result<Option<T>, Failure>,
    ) -> Result<T, Failure> {
        self.readiness
            .until(direction, dont_wait, || match self.open()? {
                Some(open) => attempt(open),
                None => Ok(None),
            })
    }

    pub(crate) fn close(&self) {
        if let Some(Ok(open)) = self.opened.get() {
            open.close();
        }
    }

    /// Ends the connection when everything has arrived or is too late.
    pub(crate) fn finish(&self, within: Option<Duration>) -> Result<(), Failure> {
        let open = self.connected()?;
        let within = within.unwrap_or(self.settings.linger);
        open.is_finishing.store(true, Ordering::SeqCst);
        let mut sender = lock(&open.sender).take();
        let finished = runtime()?.block_on(async {
            timeout(within, async {
                if let Some(sender) = &mut sender {
                    // The bytes before an error are sent.
                    let _ = sender.finish();
                    sender.flush_all().await;
                }
                open.connection.finish().await
            })
            .await
        });
        match finished {
            Ok(Err(reason)) if !reason.is_clean() => Err(reason.into()),
            Ok(_) => Ok(()),
            Err(_) => {
                *lock(&open.sender) = sender;
                let ms = within.as_millis();
                let text = format!("not everything has an outcome after {ms} ms; call again");
                Err(Failure::new(libc::ETIMEDOUT, text))
            }
        }
    }
}

/// The configuration of a URI. It may take 0.2 s to make a key from a passphrase.
pub(crate) fn config(uri: &Uri) -> Result<Config, Failure> {
    // `comity_read` restores the packets of a transport stream.
    Ok(uri.builder()?.features(LAYOUT_FEATURE).build()?)
}

/// Calls a listener.
pub(crate) fn dial(uri: &Uri) -> Result<Made, Failure> {
    let config = config(uri)?;
    let made = runtime()?.block_on(async {
        let once = Reconnect::No.into();
        let mut dialer = Dialer::open(&uri.role, config, once, Observer::default())?;
        let connection = dialer.connection().await?;
        Ok((connection, Arc::new(Socket::Caller(Box::new(dialer)))))
    });
    made.map_err(|error: Error| error.into())
}
