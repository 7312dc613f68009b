//! The spacing of one stream's datagrams on real sockets, by the system's time stamps, and the
//! spacing that its controller planned: the tables of `docs/results/endpoint-cost.md`.
//!
//! The trace of a connection has the planned departure of each packet (`planned`). The measurement
//! fails unless the trace and the tap have the same datagrams in the same order.

mod tap;

use std::path::Path;
use std::time::{Duration, Instant};

use comity::{CloseCode, Endpoint, Qlog, Reliability, Section};
use comity_congestion::table::{self, Parameters};
use serde_json::Value;

use crate::common::{Failure, loopback, options};
use tap::{Arrival, Narrow, Tap};

const SECTION: usize = 1_316;
/// The bytes that a trace counts for UDP and IP, which may be IPv6.
const HEADERS: u64 = 48;
/// The measured spacings, in microseconds.
const ASKED_US: std::ops::RangeInclusive<f64> = 50.0..=1_000.0;

pub(crate) async fn measure(seconds: u64) -> Result<(), Failure> {
    println!("| gap | mean | 1 % | 10 % | 50 % | 90 % | 99 % |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for gap_us in [50, 100, 200, 500, 1_000] {
        fixed(seconds, gap_us).await?;
    }
    println!();
    println!(
        "| controller | link, Mb/s | gaps | planned, 1 % | 50 % | 99 % | error, mean | 50 % | 99 % | 99.9 % |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (title, controller, parameters) in CONTROLLERS {
        for megabits in [100, 50, 20, 12] {
            let narrow = Narrow {
                megabits,
                delay: Duration::from_millis(5),
                queue: 20,
            };
            adaptive(seconds, title, controller, parameters, narrow).await?;
        }
    }
    Ok(())
}

/// The controllers that set each departure: their title in the table, name and parameters.
const CONTROLLERS: [(&str, &str, &str); 3] = [
    ("psp, ad hoc", "psp", "link=1Gbps&damped=false"),
    ("psp, damped", "psp", "link=1Gbps&damped=true"),
    ("iftp", "iftp", "link=1Gbps"),
];

/// A controller with a fixed gap, and a path without losses.
async fn fixed(seconds: u64, gap_us: u64) -> Result<(), Failure> {
    let row = table::find("fixed")?;
    let gap = row.parse("gap", &format!("{gap_us}us"))?;
    let options = options()
        .controller("fixed")
        .controller_parameters(Parameters::new().with("gap", gap))
        .reliability(Reliability::Full)
        .build()?;
    let endpoint = Endpoint::bind(loopback(), options.clone())?;
    let caller = Endpoint::for_calls(loopback(), options)?;
    let tap = Tap::start(endpoint.local_address(), None)?;
    let (called, accepted) = tokio::join!(caller.connect(tap.address), endpoint.accept());
    let (called, accepted) = (called?, accepted.ok_or("not accepted")?);
    tokio::spawn(async move { while accepted.recv().await.is_some() {} });
    let payload = bytes::Bytes::from(vec![7; SECTION]);
    for _ in 0..seconds * 1_000_000 / gap_us {
        called.send(Section::new(payload.clone())).await?;
    }
    called.finish().await?;
    let arrivals = full(&tap.end()?);
    let gaps = arrivals.windows(2).map(|pair| micros(pair[0], pair[1]));
    let gaps = Distribution::new(gaps.collect());
    println!(
        "| {gap_us} | {:.1} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} |",
        gaps.mean,
        gaps.at(0.01),
        gaps.at(0.1),
        gaps.at(0.5),
        gaps.at(0.9),
        gaps.at(0.99),
    );
    Ok(())
}

/// A controller that derives its spacing from the losses of a narrow link, with an application that
/// always has more to send.
async fn adaptive(
    seconds: u64,
    title: &str,
    controller: &str,
    parameters: &str,
    narrow: Narrow,
) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("caller.sqlog");
    let qlog = Qlog::create_over(&path, 4 << 30)?;
    let row = table::find(controller)?;
    let options = options()
        .controller(controller)
        .controller_parameters(row.parse_list(parameters)?)
        .reliability(Reliability::None);
    let endpoint = Endpoint::bind(loopback(), options.clone().build()?)?;
    let caller = Endpoint::for_calls(loopback(), options.qlog(qlog.clone()).build()?)?;
    let tap = Tap::start(endpoint.local_address(), Some(narrow))?;
    let (called, accepted) = tokio::join!(caller.connect(tap.address), endpoint.accept());
    let (called, accepted) = (called?, accepted.ok_or("not accepted")?);
    tokio::spawn(async move { while accepted.recv().await.is_some() {} });
    let payload = bytes::Bytes::from(vec![7; SECTION]);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(seconds) {
        let section = Section::new(payload.clone()).deadline(Duration::MAX);
        called.send(section).await?;
    }
    called.close(CloseCode::DONE, "");
    caller.close().await;
    endpoint.close().await;
    let arrivals = full(&tap.end()?);
    qlog.finish()?;
    let planned = planned(&path)?;
    if !arrivals
        .iter()
        .map(|arrival| arrival.length)
        .eq(planned.iter().map(|sent| sent.length))
    {
        let (passed, sent) = (arrivals.len(), planned.len());
        return Err(format!("{sent} datagrams were sent, and others passed, {passed}").into());
    }
    let (mut asked, mut signed) = (Vec::new(), Vec::new());
    for (arrivals, sent) in arrivals.windows(2).zip(planned.windows(2)) {
        let (Some(before), Some(then)) = (sent[0].planned_us, sent[1].planned_us) else {
            continue;
        };
        if ASKED_US.contains(&(then - before)) {
            asked.push(then - before);
            signed.push(micros(arrivals[0], arrivals[1]) - (then - before));
        }
    }
    let errors = Distribution::new(signed.iter().map(|error| error.abs()).collect());
    let (asked, signed) = (Distribution::new(asked), Distribution::new(signed));
    println!(
        "| {title} | {} | {} | {:.0} | {:.0} | {:.0} | {:.1} | {:.0} | {:.0} | {:.0} |",
        narrow.megabits,
        asked.sorted.len(),
        asked.at(0.01),
        asked.at(0.5),
        asked.at(0.99),
        signed.mean,
        errors.at(0.5),
        errors.at(0.99),
        errors.at(0.999),
    );
    Ok(())
}

/// A full datagram of the trace.
struct Sent {
    length: usize,
    /// Its planned departure, on the clock of the trace, if pacing held it back.
    planned_us: Option<f64>,
}

/// The full datagrams in the trace at `path`.
fn planned(path: &Path) -> Result<Vec<Sent>, Failure> {
    let text = std::fs::read_to_string(path)?;
    let mut sent = Vec::new();
    for record in text.split('\u{1e}') {
        if !record.contains("transport:packet_sent") {
            continue;
        }
        let event: Value = serde_json::from_str(record)?;
        let data = &event["data"];
        let wire = data["raw"]["length"]
            .as_u64()
            .ok_or("a packet without a length")?;
        let length = usize::try_from(wire.saturating_sub(HEADERS))?;
        if length >= SECTION {
            sent.push(Sent {
                length,
                planned_us: data["planned"].as_f64().map(|millis| millis * 1e3),
            });
        }
    }
    Ok(sent)
}

/// The datagrams that hold a section.
fn full(arrivals: &[Arrival]) -> Vec<Arrival> {
    let full = arrivals.iter().filter(|arrival| arrival.length >= SECTION);
    full.copied().collect()
}

/// The time between two departures, in microseconds.
fn micros(from: Arrival, to: Arrival) -> f64 {
    (to.at - from.at) as f64 / 1e3
}

struct Distribution {
    sorted: Vec<f64>,
    mean: f64,
}

impl Distribution {
    fn new(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        Self {
            mean: values.iter().sum::<f64>() / values.len() as f64,
            sorted: values,
        }
    }

    fn at(&self, share: f64) -> f64 {
        let rank = (share * self.sorted.len() as f64) as usize;
        let last = self.sorted.len().saturating_sub(1);
        self.sorted.get(rank.min(last)).copied().unwrap_or(f64::NAN)
    }
}
