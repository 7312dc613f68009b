//! What the laboratory adds to `comity list`.

mod applications;
mod systems;

use comity_commands::list::Listed;
use comity_sim::scenario::applications::APPLICATIONS;

/// The systems and the applications.
pub fn listed() -> impl Iterator<Item = Listed> {
    let systems: Vec<_> = systems::systems().iter().map(systems::listed).collect();
    systems.into_iter().chain(applications::applications())
}

/// Their names. Every start of the program needs them, so this creates nothing else.
pub fn names() -> impl Iterator<Item = &'static str> {
    let systems = systems::systems().into_iter().map(|system| system.name);
    systems.chain(APPLICATIONS.iter().map(|application| application.name))
}
