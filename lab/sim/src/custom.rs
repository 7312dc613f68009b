//! Custom controllers: those of the program around the simulator.

use comity_congestion::Controller;
use comity_congestion::Pacing;
use comity_congestion::controllers::Fixed;
use comity_congestion::table::{Parameters, Setup};

/// Builds controllers that [`comity_congestion::table`] does not have.
///
/// A custom controller has no receiver's half: its packets carry no
/// [`Tag`](comity_congestion::Tag),
/// and it never gets [`Event::Feedback`](comity_congestion::Event::Feedback).
pub trait CustomControllers: Sync {
    /// Builds the controller `name` of one flow; `None` if the program has none of this name. The
    /// seed of `setup` is that of the flow's own random stream.
    fn build(&self, name: &str, setup: &Setup, parameters: &Parameters)
    -> Option<CustomController>;

    /// Whether a controller that was built here failed. Its run then ends early and has no report.
    fn has_failed(&self) -> bool {
        false
    }
}

/// A custom controller, or why it could not be built.
pub type CustomController = Result<Box<dyn Controller>, String>;

/// The program around the simulator has no controllers.
#[derive(Clone, Copy, Debug)]
pub struct NoControllers;

/// A reference builds what its target builds.
impl<C: CustomControllers + ?Sized> CustomControllers for &C {
    fn build(
        &self,
        name: &str,
        setup: &Setup,
        parameters: &Parameters,
    ) -> Option<CustomController> {
        (**self).build(name, setup, parameters)
    }

    fn has_failed(&self) -> bool {
        (**self).has_failed()
    }
}

impl CustomControllers for NoControllers {
    fn build(&self, _: &str, _: &Setup, _: &Parameters) -> Option<CustomController> {
        None
    }
}

/// Names of custom controllers, for checks. Only runs build the controllers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names<'n>(pub(crate) &'n [String]);

impl CustomControllers for Names<'_> {
    fn build(&self, name: &str, setup: &Setup, _: &Parameters) -> Option<CustomController> {
        let is_known = self.0.iter().any(|known| known == name);
        let fixed = || Fixed::new(setup.mss, setup.initial_window, Pacing::Unpaced);
        is_known.then(|| Ok(Box::new(fixed()) as _))
    }
}
