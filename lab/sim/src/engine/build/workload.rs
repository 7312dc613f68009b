//! Workloads of flows from their descriptions.

use std::sync::Arc;

use comity_link::{LinkConfig, Random, RateProfile};
use comity_units::{DataSize, Rate, Span, Time};

use crate::engine::flow::{DatagramSource, TcpWorkload};
use crate::engine::producer::Producer;
use crate::engine::schedule::{Interval, Schedule};
use crate::engine::timeline::TimelineFlow;
use crate::engine::tokens::{Bucket, TokenSource};
use crate::frames::{AdaptiveEncoder, Encoder, LARGEST_FRAME};
use crate::network::{
    CbrSpacing, DatagramSpec, FlowError, FlowSpec, Reader, TcpSpec, TransportSpec, Workload,
};

/// The workload of a TCP source, with its first link and the delay of the reverse direction.
pub(in crate::engine) fn tcp_workload(
    spec: &FlowSpec,
    tcp: &TcpSpec,
    (first_link, reverse_delay): (Option<&LinkConfig>, Span),
    start: Time,
    mut random: Random,
) -> Result<TcpWorkload, FlowError> {
    if let Some(timeline) = &tcp.timeline {
        if timeline.feedback.is_some_and(Span::is_zero) {
            return Err(FlowError::ReportInterval);
        }
        if spec.reader != Reader::Immediate {
            return Err(FlowError::PlaybackOfSections);
        }
        let producer = section_producer(spec, timeline.section, start, random)?;
        let source = TimelineFlow::new(producer, timeline, start, reverse_delay);
        return Ok(TcpWorkload::Timeline(Box::new(source)));
    }
    let chunk = tcp.config.mss;
    match spec.workload {
        Workload::Greedy => Ok(TcpWorkload::Greedy),
        Workload::File(bytes) => Ok(TcpWorkload::File(bytes.get())),
        Workload::RandomFile(ref sizes) => Ok(TcpWorkload::File(sizes.draw(&mut random).get())),
        Workload::TokenBucket {
            depth,
            refill,
            interval,
        } => {
            let bucket = token_bucket((depth, refill, interval), start)?;
            Ok(TcpWorkload::Bucket(Box::new(TokenSource::new(
                bucket, chunk,
            ))))
        }
        Workload::Cbr { .. } | Workload::OnOff { .. } | Workload::Poisson { .. } => {
            let schedule = calendar(spec, u64::from(chunk), first_link, start, random)?;
            Ok(TcpWorkload::Schedule {
                schedule: Box::new(schedule),
                chunk,
            })
        }
        Workload::Video(_) | Workload::Frames(_) => Err(FlowError::FramesWithoutSections),
        Workload::Encoder(_) => Err(FlowError::EncoderWithoutTarget),
    }
}

fn token_bucket(
    (depth, refill, interval): (DataSize, DataSize, Span),
    start: Time,
) -> Result<Bucket, FlowError> {
    if interval.is_zero() {
        return Err(FlowError::RefillInterval);
    }
    Ok(Bucket::new(depth, refill, interval, start))
}

/// The size of datagrams, and the workload of their source.
pub(in crate::engine) fn datagram_source(
    spec: &FlowSpec,
    datagram: &DatagramSpec,
    first_link: Option<&LinkConfig>,
    start: Time,
    random: Random,
) -> Result<(u32, DatagramSource), FlowError> {
    let wire = u32::try_from(datagram.wire.get())
        .ok()
        .filter(|&wire| wire > 0)
        .ok_or(FlowError::DatagramSize)?;
    let source = match spec.workload {
        // The first emission comes with a refill, which does not change a full bucket.
        Workload::TokenBucket {
            depth,
            refill,
            interval,
        } => DatagramSource::Bucket(Bucket {
            next_refill: start,
            ..token_bucket((depth, refill, interval), start)?
        }),
        Workload::Cbr { .. } | Workload::OnOff { .. } | Workload::Poisson { .. } => {
            let schedule = calendar(spec, wire.into(), first_link, start, random)?;
            DatagramSource::Schedule(schedule)
        }
        Workload::Greedy | Workload::File(_) | Workload::RandomFile(_) => {
            return Err(FlowError::UnclockedDatagrams);
        }
        Workload::Video(_) | Workload::Frames(_) => {
            return Err(FlowError::FramesWithoutSections);
        }
        Workload::Encoder(_) => return Err(FlowError::EncoderWithoutTarget),
    };
    Ok((wire, source))
}

pub(in crate::engine) fn section_producer(
    spec: &FlowSpec,
    section: DataSize,
    start: Time,
    random: Random,
) -> Result<Producer, FlowError> {
    let bytes = u32::try_from(section.get())
        .ok()
        .filter(|bytes| (1..=LARGEST_FRAME).contains(bytes))
        .ok_or(FlowError::SectionSize)?;
    match &spec.workload {
        Workload::Greedy => Ok(Producer::Greedy(bytes)),
        Workload::Video(video) => {
            video.validate().map_err(FlowError::Video)?;
            Ok(Producer::Encoder(Encoder::new(*video, start, random)))
        }
        Workload::Encoder(_) if !matches!(spec.transport, TransportSpec::Sections(_)) => {
            Err(FlowError::EncoderWithoutTarget)
        }
        Workload::Encoder(video) => {
            video.validate().map_err(FlowError::Encoder)?;
            let encoder = AdaptiveEncoder::new(video.clone(), start, random);
            Ok(Producer::Adaptive(Box::new(encoder)))
        }
        Workload::Frames(frames) => Ok(Producer::List {
            frames: Arc::clone(frames),
            next: 0,
            start,
        }),
        Workload::Cbr {
            spacing: CbrSpacing::Gap(_),
            ..
        }
        | Workload::File(_)
        | Workload::RandomFile(_)
        | Workload::TokenBucket { .. } => Err(FlowError::WorkloadOfSections),
        Workload::Cbr { .. } | Workload::OnOff { .. } | Workload::Poisson { .. } => {
            calendar(spec, u64::from(bytes), None, start, random)
                .map(|schedule| Producer::Schedule(schedule, bytes))
        }
    }
}

/// The times of packets of `bytes`, for a workload that has a calendar.
fn calendar(
    spec: &FlowSpec,
    bytes: u64,
    first_link: Option<&LinkConfig>,
    start: Time,
    random: Random,
) -> Result<Schedule, FlowError> {
    let of_rate = |rate: Rate| match rate.as_bps() {
        0 => Err(FlowError::NoRate),
        _ => Ok(Interval::of_rate(bytes, rate)),
    };
    let exact = |interval: Span| match interval.is_zero() {
        true => Err(FlowError::NoSpacing),
        false => Ok(Interval::exact(interval)),
    };
    let interval = match spec.workload {
        Workload::Cbr { spacing, .. } => match spacing {
            CbrSpacing::Rate(rate) => of_rate(rate)?,
            CbrSpacing::Interval(interval) => exact(interval)?,
            CbrSpacing::Gap(gap) => {
                let transmission = match first_link.map(|link| &link.rate) {
                    Some(RateProfile::Constant(rate)) => {
                        rate.transmission_time(DataSize::new(bytes))
                    }
                    _ => Span::ZERO,
                };
                exact(gap + transmission)?
            }
        },
        Workload::Poisson { rate } => of_rate(rate)?,
        Workload::OnOff { mean_on, .. } if mean_on.is_zero() => {
            return Err(FlowError::NeverOn);
        }
        Workload::OnOff { rate, .. } => of_rate(rate)?,
        Workload::Greedy
        | Workload::File(_)
        | Workload::RandomFile(_)
        | Workload::TokenBucket { .. }
        | Workload::Video(_)
        | Workload::Encoder(_)
        | Workload::Frames(_) => return Err(FlowError::WorkloadOfSections),
    };
    Schedule::new(&spec.workload, interval, start, random).ok_or(FlowError::WorkloadOfSections)
}
