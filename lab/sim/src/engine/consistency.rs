//! Rules that do not concern paths: unique names, known nodes, and a warm-up that ends before the
//! run.

use crate::network::{Network, NetworkError, NodeId};

/// Checks that the warm-up is shorter than the run.
pub(crate) fn times(network: &Network) -> Result<(), NetworkError> {
    if network.warmup < network.duration {
        Ok(())
    } else {
        Err(NetworkError::Warmup)
    }
}

/// Checks that names are unique and nodes exist.
pub(super) fn names(network: &Network) -> Result<(), NetworkError> {
    let links = network.links.iter().map(|link| &link.name);
    let flows = network.flows.iter().map(|flow| &flow.name);
    for mut names in [links.collect::<Vec<_>>(), flows.collect()] {
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(NetworkError::DuplicateName {
                name: pair[0].clone(),
            });
        }
    }
    let known = network.nodes.len() as u32;
    let check = |user: String, node: NodeId| match node.0 < known {
        true => Ok(()),
        false => Err(NetworkError::UnknownNode { user, node: node.0 }),
    };
    for link in &network.links {
        check(format!("link {:?}", link.name), link.from)?;
        check(format!("link {:?}", link.name), link.to)?;
    }
    for flow in &network.flows {
        check(format!("flow {:?}", flow.name), flow.source)?;
        check(format!("flow {:?}", flow.name), flow.destination)?;
    }
    Ok(())
}
