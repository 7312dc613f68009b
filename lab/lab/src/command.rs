//! Flows of programs.

use std::process::Command;

use comity_sim::network::CommandSpec;
use comity_units::{Seed, Span};

use crate::host::Addresses;

/// The values of a run that replace placeholders in commands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Values {
    pub(crate) source: Addresses,
    pub(crate) destination: Addresses,
    pub(crate) port: u16,
    pub(crate) length: Span,
    pub(crate) seed: Seed,
}

impl Values {
    /// The text with its placeholders replaced.
    fn fill(&self, text: &str) -> String {
        text.replace("{address}", &self.destination.v4.to_string())
            .replace("{source}", &self.source.v4.to_string())
            .replace("{address6}", &self.destination.v6.to_string())
            .replace("{source6}", &self.source.v6.to_string())
            .replace("{port}", &self.port.to_string())
            .replace("{seconds}", &self.length.as_secs_f64().to_string())
            .replace("{seed}", &self.seed.get().to_string())
    }

    fn shell(&self, text: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", &self.fill(text)]);
        command
    }

    /// The command of the source and that of the destination.
    pub(crate) fn commands(&self, spec: &CommandSpec) -> (Command, Option<Command>) {
        let receiver = spec.receiver.as_ref().map(|text| self.shell(text));
        (self.shell(&spec.sender), receiver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_in_for_their_names() {
        let values = Values {
            source: Addresses::of(0, 0),
            destination: Addresses::of(0, 1),
            port: 5_000,
            length: Span::from_millis(2_500),
            seed: Seed::new(7),
        };
        let spec = CommandSpec {
            sender: "iperf3 -c {address} -B {source} -p {port} -t {seconds}".into(),
            receiver: Some("serve -6 {address6} {source6} --seed {seed} {unknown}".into()),
        };
        let (sender, receiver) = values.commands(&spec);
        let words: Vec<_> = sender.get_args().collect();
        assert_eq!(
            words,
            ["-c", "iperf3 -c 198.19.0.1 -B 198.18.0.1 -p 5000 -t 2.5"]
        );
        let receiver = receiver.unwrap();
        assert_eq!(
            receiver.get_args().nth(1).unwrap(),
            "serve -6 2001:2::2:1 2001:2::1:1 --seed 7 {unknown}"
        );
    }
}
