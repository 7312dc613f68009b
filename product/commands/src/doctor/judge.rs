//! From facts to verdicts, without access to the host.

use comity::parts::SYSTEM_BUFFER;
use comity_units::{DataSize, Rate, Span};

use crate::mtu::Mtu;

use super::facts::{Clock, Facts, Loopback, Port, Queueing};

/// The quality of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    /// As it should be.
    Good,
    /// Comity works, but with more loss, delay or processor time than necessary.
    CouldBeBetter,
    /// Comity does not work as documented.
    Bad,
}

impl Verdict {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Bad => "bad",
            Self::CouldBeBetter => "could be better",
            Self::Good => "good",
        }
    }
}

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// The name of the check.
    pub(super) check: String,
    /// The result.
    pub(super) found: String,
    pub(super) verdict: Verdict,
    /// The command that fixes it, or advice.
    pub(super) remedy: Option<String>,
}

impl Finding {
    fn new(check: &str, found: impl Into<String>, verdict: Verdict) -> Self {
        Self {
            check: check.into(),
            found: found.into(),
            verdict,
            remedy: None,
        }
    }

    fn unknown(check: &str) -> Self {
        Self::new(check, "this system does not say", Verdict::CouldBeBetter)
    }

    /// Adds the command, unless there is nothing to fix.
    fn mend(mut self, remedy: impl Into<String>) -> Self {
        if self.verdict != Verdict::Good {
            self.remedy = Some(remedy.into());
        }
        self
    }
}

/// The rate at which the report converts socket buffers to time.
const RATE: Rate = Rate::from_mbps(100);

/// All findings, in the order of the report.
pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = vec![
        buffer("receive buffer", "net.core.rmem_max", facts.receive_buffer),
        buffer("send buffer", "net.core.wmem_max", facts.send_buffer),
    ];
    findings.extend(loopback(facts.loopback.as_ref()));
    findings.extend([
        clock(facts.clock.as_ref()),
        timers(&facts.lateness),
        processors(facts.processors),
        kernel(facts.kernel.as_deref()),
        congestion_controls(facts.congestion_controls.as_deref()),
        queueing(facts.queueing.as_ref()),
        mtu(facts.mtu),
    ]);
    let controllers = facts.kernel_controllers.iter();
    findings.extend(controllers.map(|(name, missing)| kernel_controller(name, missing)));
    findings.extend(facts.ports.iter().map(port));
    findings
}

/// Good from the size that an endpoint requests; bad below Linux's default of 212,992 bytes.
fn buffer(check: &str, name: &str, limit: Option<u64>) -> Finding {
    const USUAL: u64 = 212_992;
    const ASKED: u64 = SYSTEM_BUFFER as u64;
    let Some(limit) = limit else {
        return Finding::unknown(check);
    };
    let lasts = |bytes| RATE.transmission_time(DataSize::new(bytes)).as_millis();
    let (verdict, found) = match limit {
        ASKED.. => (
            Verdict::Good,
            format!("{ASKED} bytes, {} ms of 100 Mb/s", lasts(ASKED)),
        ),
        _ => (
            if limit >= USUAL {
                Verdict::CouldBeBetter
            } else {
                Verdict::Bad
            },
            format!(
                "{limit} of the {ASKED} requested bytes: {} ms of 100 Mb/s",
                lasts(limit)
            ),
        ),
    };
    Finding::new(check, found, verdict).mend(format!("sudo sysctl -w {name}={ASKED}"))
}

fn loopback(found: Option<&Result<Loopback, String>>) -> Vec<Finding> {
    const CHECKS: [&str; 4] = [
        "sending in batches (GSO)",
        "receiving in batches (GRO)",
        "ECN",
        "receive timestamps",
    ];
    let loopback = match found {
        None => return CHECKS.map(Finding::unknown).into(),
        Some(Err(reason)) => {
            let found = format!("UDP does not work on the loopback interface: {reason}");
            return vec![Finding::new("UDP", found, Verdict::Bad).mend("sudo ip link set lo up")];
        }
        Some(Ok(loopback)) => loopback,
    };
    let (arrived, given) = loopback.arrived;
    let sending = match (loopback.segments, arrived == given) {
        (_, false) => Finding::new(
            CHECKS[0],
            format!("{arrived} of {given} datagrams sent at once arrived"),
            Verdict::Bad,
        ),
        (0 | 1, true) => Finding::new(CHECKS[0], "one datagram at a time", Verdict::CouldBeBetter),
        (most, true) => Finding::new(
            CHECKS[0],
            format!("up to {most} datagrams at once"),
            Verdict::Good,
        ),
    };
    let receiving = match loopback.coalesced {
        0 | 1 => Finding::new(CHECKS[1], "one datagram at a time", Verdict::CouldBeBetter),
        most => Finding::new(
            CHECKS[1],
            format!("{most} datagrams at once"),
            Verdict::Good,
        ),
    };
    let marks = ["ECT(0)", "ECT(1)", "CE"];
    let lost: Vec<_> = marks
        .into_iter()
        .zip(loopback.marks)
        .filter_map(|(mark, kept)| (!kept).then_some(mark))
        .collect();
    let ecn = match lost.as_slice() {
        [] => Finding::new(
            CHECKS[2],
            "all marks survive the loopback interface",
            Verdict::Good,
        ),
        lost => Finding::new(
            CHECKS[2],
            format!("{} did not survive the loopback interface", lost.join(", ")),
            Verdict::CouldBeBetter,
        ),
    };
    let stamps = match loopback.timestamps {
        true => Finding::new(CHECKS[3], "the kernel stamps datagrams", Verdict::Good),
        false => Finding::new(CHECKS[3], "none, or wrong ones", Verdict::CouldBeBetter),
    };
    let newer =
        "sudo apt-get update && sudo apt-get install linux-image-$(dpkg --print-architecture)";
    vec![
        sending.mend(newer),
        receiving.mend(newer),
        ecn.mend("sudo iptables -t mangle -S | grep -i -e ecn -e tos; sudo nft list ruleset | grep -i -e ecn -e dscp"),
        stamps.mend("sudo timedatectl set-ntp true"),
    ]
}

/// Good below 200 ns, which needs no system call; bad from 2 us.
fn clock(clock: Option<&Clock>) -> Finding {
    const CHECK: &str = "clock";
    let Some(clock) = clock else {
        return Finding::unknown(CHECK);
    };
    let slow =
        ["hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"].contains(&clock.current.as_str());
    let verdict = match clock.reading {
        reading if reading >= Span::from_micros(2) => Verdict::Bad,
        reading if slow || reading >= Span::from_nanos(200) => Verdict::CouldBeBetter,
        _ => Verdict::Good,
    };
    let found = format!("{}, {} for one reading", clock.current, clock.reading);
    const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";
    let better = [
        "tsc",
        "kvm-clock",
        "hyperv_clocksource_tsc_page",
        "arch_sys_counter",
    ]
    .into_iter()
    .find(|name| clock.available.iter().any(|known| known == name));
    let remedy = match better.filter(|better| *better != clock.current) {
        Some(better) => format!("echo {better} | sudo tee {FOLDER}/current_clocksource"),
        None => "sudo dmesg | grep -i -e tsc -e clocksource".into(),
    };
    Finding::new(CHECK, found, verdict).mend(remedy)
}

/// Good up to 0.5 ms at the 99th percentile; bad above 5 ms, where pacing is impossible.
fn timers(lateness: &[Span]) -> Finding {
    const CHECK: &str = "timers";
    // The smallest value that at least `percent` of the values do not exceed.
    let rank = |percent: usize| (lateness.len() * percent).div_ceil(100).checked_sub(1);
    let at = |percent| rank(percent).and_then(|rank| lateness.get(rank)).copied();
    let (Some(median), Some(late)) = (at(50), at(99)) else {
        return Finding::unknown(CHECK);
    };
    let verdict = match late {
        late if late <= Span::from_micros(500) => Verdict::Good,
        late if late <= Span::from_millis(5) => Verdict::CouldBeBetter,
        _ => Verdict::Bad,
    };
    let micros = |span: Span| span.as_nanos().div_ceil(1_000);
    let found = format!(
        "{} us late at the median of {} waits, {} us at the 99th percentile",
        micros(median),
        lateness.len(),
        micros(late)
    );
    Finding::new(CHECK, found, verdict)
        .mend("sudo cpupower idle-set --disable-by-latency 50 && sudo cpupower frequency-set --governor performance")
}

fn processors(count: Option<usize>) -> Finding {
    const CHECK: &str = "processors";
    match count {
        None => Finding::unknown(CHECK),
        Some(1) => Finding::new(
            CHECK,
            "1, shared by media and network",
            Verdict::CouldBeBetter,
        )
        .mend("taskset --cpu-list --pid 0-$(($(nproc --all) - 1)) $$"),
        Some(count) => Finding::new(CHECK, count.to_string(), Verdict::Good),
    }
}

/// The first two numbers of a release such as `6.1.0-13-amd64`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// GSO came with Linux 4.18, GRO for UDP with 5.0, TCP controllers in BPF with 5.6.
fn kernel(release: Option<&str>) -> Finding {
    const CHECK: &str = "kernel";
    let Some((release, version)) = release.and_then(|release| Some((release, version(release)?)))
    else {
        return Finding::unknown(CHECK);
    };
    let verdict = match version {
        (5, 6..) | (6.., _) => Verdict::Good,
        (4, 18..) | (5, _) => Verdict::CouldBeBetter,
        _ => Verdict::Bad,
    };
    Finding::new(CHECK, format!("Linux {release}"), verdict).mend(
        "sudo apt-get update && sudo apt-get install linux-image-$(dpkg --print-architecture)",
    )
}

/// The controllers that Comity is compared with; it does not need them.
fn congestion_controls(known: Option<&[String]>) -> Finding {
    const CHECK: &str = "TCP congestion controls";
    let Some(known) = known else {
        return Finding::unknown(CHECK);
    };
    let missing: Vec<_> = ["reno", "cubic", "bbr"]
        .into_iter()
        .filter(|name| !known.iter().any(|known| known == name))
        .collect();
    let modules: Vec<_> = missing.iter().map(|name| format!("tcp_{name}")).collect();
    match missing.is_empty() {
        true => Finding::new(CHECK, known.join(", "), Verdict::Good),
        false => Finding::new(
            CHECK,
            format!("{}; without {}", known.join(", "), missing.join(", ")),
            Verdict::CouldBeBetter,
        )
        .mend(format!("sudo modprobe --all {}", modules.join(" "))),
    }
}

fn queueing(queueing: Option<&Queueing>) -> Finding {
    const CHECK: &str = "queueing of interfaces";
    let Some(queueing) = queueing else {
        return Finding::unknown(CHECK);
    };
    let verdict = match queueing.default.as_str() {
        "fq" | "fq_codel" | "cake" => Verdict::Good,
        _ => Verdict::CouldBeBetter,
    };
    let now = queueing
        .interface
        .as_ref()
        .map_or(String::new(), |interface| {
            format!(" && sudo tc qdisc replace dev {interface} root fq")
        });
    let found = format!("{} by default", queueing.default);
    Finding::new(CHECK, found, verdict)
        .mend(format!("sudo sysctl -w net.core.default_qdisc=fq{now}"))
}

/// Good if full packets fit; bad if the first packets of a connection do not. Other networks on the
/// path may have a smaller MTU.
fn mtu(mtu: Option<Mtu>) -> Finding {
    const CHECK: &str = "MTU of the outgoing interface";
    let Some(mtu) = mtu else {
        return Finding::new(
            CHECK,
            "no default route, or this system does not say",
            Verdict::CouldBeBetter,
        )
        .mend("ip route show; ip route add default via ADDRESS makes one");
    };
    let (bytes, first, full) = (mtu.bytes, mtu.first(), mtu.full());
    let (found, verdict) = match bytes {
        bytes if bytes >= full => (format!("{bytes} bytes"), Verdict::Good),
        bytes if bytes >= first => (
            format!(
                "{bytes} bytes; full packets need {full}. Connections discover the size by themselves; mtu={bytes} in the URI \
                 spares them the search"
            ),
            Verdict::CouldBeBetter,
        ),
        _ => (
            format!(
                "{bytes} bytes; the first packets of a connection have {first}: no connection is possible"
            ),
            Verdict::Bad,
        ),
    };
    // An MTU above that of the network would cut the host off, so only the user can decide.
    let remedy = "ip route get 192.0.2.1; ip link show";
    Finding::new(CHECK, found, verdict).mend(remedy)
}

fn kernel_controller(name: &str, missing: &[String]) -> Finding {
    let check = format!("controller {name} in the kernel");
    if missing.is_empty() {
        return Finding::new(&check, "can be loaded", Verdict::Good);
    }
    Finding::new(&check, "cannot be loaded", Verdict::CouldBeBetter).mend(missing.join("\n    "))
}

fn port(port: &Port) -> Finding {
    let number = port.number;
    let check = format!("UDP port {number}");
    match &port.reached {
        Err(reason) => Finding::new(
            &check,
            format!("cannot listen on it: {reason}"),
            Verdict::Bad,
        )
        .mend(format!(
            "sudo ss --udp --listening --processes --numeric 'sport = :{number}'"
        )),
        Ok(tried) => {
            let list = |wanted: bool| {
                let these = tried.iter().filter(|(_, reached)| *reached == wanted);
                let these: Vec<_> = these.map(|(address, _)| address.to_string()).collect();
                these.join(", ")
            };
            let (yes, no) = (list(true), list(false));
            let finding = match (yes.is_empty(), no.is_empty()) {
                (false, true) => Finding::new(
                    &check,
                    format!("free, and reached from this host at {yes}"),
                    Verdict::Good,
                ),
                (true, _) => {
                    Finding::new(&check, "free, but not reached from this host", Verdict::Bad)
                }
                (false, false) => Finding::new(
                    &check,
                    format!("free, and reached from this host at {yes}, but not at {no}"),
                    Verdict::CouldBeBetter,
                ),
            };
            finding.mend(format!(
                "sudo iptables -I INPUT -p udp --dport {number} -j ACCEPT"
            ))
        }
    }
}

#[cfg(test)]
mod tests;
