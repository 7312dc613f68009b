//! The halves of controllers, from their names and parameters.

use comity_congestion::table::{self, Parameters, Setup};
use comity_congestion::{Controller, Meter};

use crate::custom::CustomControllers;
use crate::network::FlowError;

/// A sender's half, and the receiver's half where the controller has one.
pub(super) type Halves = (Box<dyn Controller>, Option<Box<dyn Meter>>);

/// Builds the halves of the controller `name`.
pub(super) fn halves(
    custom: &dyn CustomControllers,
    name: &str,
    setup: &Setup,
    parameters: &Parameters,
) -> Result<Halves, FlowError> {
    if let Some(controller) = custom.build(name, setup, parameters) {
        let controller = controller.map_err(FlowError::CustomController)?;
        return Ok((controller, None));
    }
    let row = table::find(name).map_err(FlowError::Controller)?;
    let controller = row.build(setup, parameters);
    let meter = row.build_meter(setup, parameters).transpose();
    Ok((
        controller.map_err(FlowError::Parameter)?,
        meter.map_err(FlowError::Parameter)?,
    ))
}
