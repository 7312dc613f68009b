//! From link tables to link configurations.

use comity_link::{
    CodelConfig, ConfigError, DelayProfile, FqCodelConfig, Jitter, Limit, LinkConfig, Loss,
    LossModel, PieConfig, Queue, RateProfile, RedConfig,
};
use comity_units::Time;

use super::super::problem::{ProblemKind, Unfit};
use super::super::schema::{At, Context};
use super::super::tables::link::{
    DelayValue, DuplexTable, LinkTable, LossDirection, LossModelTable, LossTable, QueueTable,
    RateValue, limit,
};
use super::library::Library;

/// Both directions of a link; `None` only after a report.
pub(in crate::scenario) fn duplex(
    table: &DuplexTable,
    library: &Library,
    cx: &mut Context<'_>,
) -> Option<(LinkConfig, LinkConfig)> {
    let forward = one_way(&table.forward, None, library, cx);
    let mut reverse = match &table.reverse {
        None => forward.as_ref().map(inherited),
        Some(reverse) => one_way(reverse, forward.as_ref(), library, cx),
    }?;
    check_directions(table, cx);
    reverse.losses.extend(
        losses(&table.forward)
            .filter(|(_, table)| table.direction != LossDirection::Forward)
            .map(|(number, table)| loss(number, table)),
    );
    Some((forward?, reverse))
}

/// Reports a direction for losses that cannot have one, and losses whose state both directions
/// cannot share.
fn check_directions(table: &DuplexTable, cx: &mut Context<'_>) {
    for (_, loss) in table.reverse.iter().flat_map(losses) {
        if loss.written.has("direction") {
            cx.report_at(&loss.written, "direction", Unfit::DirectionOfReverse.into());
        }
    }
    for (_, loss) in losses(&table.forward) {
        let counts = matches!(
            loss.model,
            LossModelTable::GilbertElliott(_) | LossModelTable::Packets(_)
        );
        if counts && loss.direction == LossDirection::Both {
            cx.report_at(&loss.written, "direction", Unfit::NoStateOfBoth.into());
        }
    }
}

/// The losses of a direction with their numbers in its list.
fn losses(table: &LinkTable) -> impl Iterator<Item = (u32, &LossTable)> {
    (0..).zip(table.losses.iter().flatten())
}

/// The keys that the reverse direction copies from the forward direction.
fn inherited(forward: &LinkConfig) -> LinkConfig {
    LinkConfig {
        losses: Vec::new(),
        jitter: Jitter::None,
        duplication: 0.0,
        ..forward.clone()
    }
}

/// One direction of a link. Missing keys are those of `forward`.
fn one_way(
    table: &LinkTable,
    forward: Option<&LinkConfig>,
    library: &Library,
    cx: &mut Context<'_>,
) -> Option<LinkConfig> {
    let written = &table.written;
    let unfit = |reason| ProblemKind::Unfit { reason };
    let rate = match (&table.rate, &table.trace, forward) {
        (Some(_), Some(_), _) => {
            cx.report_at(written, "trace", ProblemKind::Excludes { other: "rate" });
            None
        }
        (Some(RateValue::Unlimited), None, _) => Some(RateProfile::Unlimited),
        (Some(RateValue::Constant(rate)), None, _) => Some(RateProfile::Constant(*rate)),
        (Some(RateValue::Steps(steps)), None, _) => Some(RateProfile::Steps(
            steps
                .iter()
                .map(|step| (Time::ZERO + step.at, step.rate))
                .collect(),
        )),
        (None, Some(trace), _) => match library.trace(cx.files, &trace.file, trace.format) {
            Ok(profile) => Some(profile),
            Err(kind) => {
                cx.report_at(written, "trace", kind);
                None
            }
        },
        (None, None, Some(forward)) => Some(forward.rate.clone()),
        (None, None, None) => {
            cx.report_at(written, "rate", unfit(Unfit::NoRate));
            None
        }
    };
    let delay = match (&table.delay, forward) {
        (Some(DelayValue::Constant(delay)), _) => Some(DelayProfile::Constant(*delay)),
        (Some(DelayValue::Steps(steps)), _) => Some(DelayProfile::Steps(
            steps
                .iter()
                .map(|step| (Time::ZERO + step.at, step.delay))
                .collect(),
        )),
        (None, Some(forward)) => Some(forward.delay.clone()),
        (None, None) => {
            cx.report_at(written, "delay", unfit(Unfit::NoDelay));
            None
        }
    };
    let queue = match (&table.queue, forward) {
        (Some(table), _) => queue(table),
        (None, Some(forward)) => forward.queue.clone(),
        (None, None) => Queue::DropTail(Limit::Unlimited),
    };
    let config = LinkConfig {
        rate: rate?,
        delay: delay?,
        mtu: table.mtu.or(forward.and_then(|forward| forward.mtu)),
        queue,
        losses: losses(table)
            .map(|(number, table)| loss(number, table))
            .collect(),
        jitter: table
            .jitter
            .as_ref()
            .map_or(Jitter::None, |jitter| jitter.jitter()),
        duplication: table.duplication.unwrap_or(0.0),
    };
    match config.validate() {
        Ok(()) => Some(config),
        Err(error) => {
            cx.report_at(
                written,
                blamed(&error, written),
                ProblemKind::Link { error },
            );
            None
        }
    }
}

/// The key that causes an error of a link.
fn blamed(error: &ConfigError, written: &At) -> &'static str {
    let field = match error {
        ConfigError::StepsOutOfOrder { field, .. }
        | ConfigError::NoSteps { field }
        | ConfigError::NoRoom { field }
        | ConfigError::Probability { field, .. }
        | ConfigError::Zero { field } => field.split(' ').next().unwrap_or_default(),
        _ => "queue",
    };
    [
        "rate",
        "delay",
        "mtu",
        "queue",
        "losses",
        "jitter",
        "duplication",
    ]
    .into_iter()
    .find(|key| *key == field && written.has(key))
    .unwrap_or("")
}

fn queue(table: &QueueTable) -> Queue {
    match table {
        QueueTable::DropTail(table) => Queue::DropTail(limit(table.limit)),
        QueueTable::Red(table) => Queue::Red(RedConfig {
            limit: limit(table.limit),
            min_threshold: table.min_threshold,
            max_threshold: table.max_threshold,
            max_probability: table.max_probability,
            weight: table.weight,
            gentle: table.gentle,
            ecn: table.ecn,
            mean_packet: table.mean_packet,
            unit: table.unit,
            wait: table.wait,
        }),
        QueueTable::CoDel(table) => Queue::CoDel(CodelConfig {
            target: table.target,
            interval: table.interval,
            limit: limit(table.limit),
            ecn: table.ecn,
            mtu: table.mtu,
        }),
        QueueTable::FqCodel(table) => Queue::FqCodel(FqCodelConfig {
            target: table.target,
            interval: table.interval,
            limit: limit(table.limit),
            ecn: table.ecn,
            mtu: table.mtu,
            queues: table.queues,
            quantum: table.quantum,
            drop_batch: table.drop_batch,
        }),
        QueueTable::Pie(table) => Queue::Pie(PieConfig {
            target: table.target,
            update_interval: table.update_interval,
            limit: limit(table.limit),
            alpha: table.alpha,
            beta: table.beta,
            max_burst: table.max_burst,
            ecn: table.ecn,
            mean_packet: table.mean_packet,
        }),
    }
}

/// The loss with this number in the list of the forward direction, or of the reverse direction.
fn loss(number: u32, loss: &LossTable) -> Loss {
    let model = match &loss.model {
        LossModelTable::Packets(table) => LossModel::Packets(table.packets.clone()),
        LossModelTable::Bernoulli(table) => LossModel::Bernoulli(table.probability),
        LossModelTable::GilbertElliott(table) => LossModel::GilbertElliott {
            p_good_to_bad: table.good_to_bad,
            p_bad_to_good: table.bad_to_good,
            loss_good: table.loss_good,
            loss_bad: table.loss_bad,
        },
        LossModelTable::OnOff(table) => LossModel::OnOff {
            mean_on: table.mean_on,
            mean_off: table.mean_off,
            drop_on: table.drop_on,
            drop_off: table.drop_off,
            start_on: table.start_on,
            shared: (loss.direction == LossDirection::Both).then_some(number),
        },
        LossModelTable::Outage(table) => LossModel::Outage {
            at: Time::ZERO + table.at,
            lasts: table.lasts,
        },
    };
    Loss {
        model,
        place: loss.place,
    }
}
