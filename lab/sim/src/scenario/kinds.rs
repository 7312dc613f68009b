//! The kinds of values that keys take.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use comity_congestion::table::nearest;
use comity_units::{DataSize, ParseError, Rate, Span};

use super::document::{Node, Value};
use super::papers::known_as;
use super::problem::ProblemKind;
use super::schema::{Context, Kind, Shape, is_text, item_label};
use super::source::SourceSpan;

/// Any text, with its meaning.
pub(super) struct Text(pub(super) &'static str);

impl Kind for Text {
    type Value = String;

    fn shape(&self) -> Shape {
        Shape::Text(self.0)
    }

    fn takes(&self, node: &Node) -> bool {
        is_text(node)
    }

    fn read(&self, node: &Node, cx: &mut Context<'_>) -> Option<String> {
        match node.text() {
            Some(text) => Some(text.into()),
            None => {
                cx.wrong_kind(node, &self.shape());
                None
            }
        }
    }
}

/// A name: letters, digits and a few signs.
pub(super) struct Name(pub(super) &'static str);

impl Kind for Name {
    type Value = String;

    fn shape(&self) -> Shape {
        Shape::Text(self.0)
    }

    fn takes(&self, node: &Node) -> bool {
        is_text(node)
    }

    fn read(&self, node: &Node, cx: &mut Context<'_>) -> Option<String> {
        let text = Text(self.0).read(node, cx)?;
        if is_name(&text) {
            return Some(text);
        }
        cx.report(node.span, ProblemKind::BadName { value: node.show() });
        None
    }
}

fn is_integer(node: &Node) -> bool {
    matches!(node.value, Value::Integer(_) | Value::HugeInteger(_))
}

/// Whether a value is a text that begins like a number. The problem is then its unit.
fn is_numeric_text(node: &Node) -> bool {
    node.text().is_some_and(|text| {
        text.trim_start()
            .starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.')
    })
}

/// Whether a text can name a flow, a node or a link.
pub(super) fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c))
}

/// A name with placeholders: `{i}`, `{i+1}` and `{i-1}` stand for the number of a flow in its
/// group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    Index(i64),
}

impl Template {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((literal, after)) = rest.split_once('{') {
            let (inside, after) = after.split_once('}')?;
            let shift = inside.trim().strip_prefix('i')?.trim();
            let shift = match (shift.strip_prefix('+'), shift.strip_prefix('-')) {
                _ if shift.is_empty() => 0,
                (Some(number), _) => number.trim().parse::<u32>().ok()?.into(),
                (_, Some(number)) => -i64::from(number.trim().parse::<u32>().ok()?),
                _ => return None,
            };
            parts.push(Part::Literal(literal.into()));
            parts.push(Part::Index(shift));
            rest = after;
        }
        parts.push(Part::Literal(rest.into()));
        parts.retain(|part| !matches!(part, Part::Literal(text) if text.is_empty()));
        let literals_are_names = parts.iter().all(|part| match part {
            Part::Literal(text) => is_name(text),
            Part::Index(_) => true,
        });
        (!parts.is_empty() && literals_are_names).then_some(Self { parts })
    }

    /// The names of the flows of a group: `GROUP-{i}`.
    pub(super) fn of_group(group: &str) -> Self {
        Self {
            parts: vec![Part::Literal(format!("{group}-")), Part::Index(0)],
        }
    }

    /// Whether the name differs for every flow.
    pub(super) fn varies(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Index(_)))
    }

    /// The name for flow `index`; `None` if an expansion is below zero.
    pub(super) fn expand(&self, index: u32) -> Option<String> {
        let mut name = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(text) => name.push_str(text),
                Part::Index(shift) => {
                    let number = i64::from(index) + shift;
                    name.push_str(&u64::try_from(number).ok()?.to_string());
                }
            }
        }
        Some(name)
    }
}

pub(super) struct NameTemplate(pub(super) &'static str);

impl Kind for NameTemplate {
    type Value = Template;

    fn shape(&self) -> Shape {
        Shape::Text(self.0)
    }

    fn takes(&self, node: &Node) -> bool {
        is_text(node)
    }

    fn read(&self, node: &Node, cx: &mut Context<'_>) -> Option<Template> {
        let text = Text(self.0).read(node, cx)?;
        let template = Template::parse(&text);
        if template.is_none() {
            let value = node.show();
            cx.report(node.span, ProblemKind::BadTemplate { value });
        }
        template
    }
}

/// `true` or `false`.
pub(super) struct Flag;

impl Kind for Flag {
    type Value = bool;

    fn shape(&self) -> Shape {
        Shape::Flag
    }

    fn takes(&self, node: &Node) -> bool {
        matches!(node.value, Value::Boolean(_))
    }

    fn read(&self, node: &Node, cx: &mut Context<'_>) -> Option<bool> {
        match node.value {
            Value::Boolean(value) => Some(value),
            _ => {
                cx.wrong_kind(node, &Shape::Flag);
                None
            }
        }
    }
}

/// A whole number within bounds.
pub(super) struct Whole {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Kind for Whole {
    type Value = u64;

    fn shape(&self) -> Shape {
        Shape::Whole {
            min: self.min,
            max: self.max,
        }
    }

    fn takes(&self, node: &Node) -> bool {
        is_integer(node)
    }

    fn read(&self, node: &Node, cx: &mut Context<'_>) -> Option<u64> {
        match &node.value {
            Value::Integer(value) => {
                let within = u64::try_from(*value)
                    .ok()
                    .filter(|value| (self.min..=self.max).contains(value));
                if within.is_none() {
                    out_of_bounds(cx, node, &self.min, &self.max);
                }
                within
            }
            Value::HugeInteger(_) => {
                out_of_bounds(cx, node, &self.min, &self.max);
                None
            }
            _ => {
                cx.wrong_kind(node, &self.shape());
                None
            }
        }
    }
}

/// A [`Whole`] that fits into 32 bits.
pub(super) struct Count {
    pub(super) min: u32,
    pub(super) max: u32,
}

impl Kind for Count {
    type Value = u32;

    fn shape(&self) -> Shape {
        Shape::Whole {
            min: self.min.into(),
            max: self.max.into(),
        }
    }

    fn takes(&self, node: &Node) -> bool {
        is_integer(node)
    }

    fn read(&self, node: &Node, cx: &mut Context<'_>) -> Option<u32> {
        let whole = Whole {
            min: self.min.into(),
            max: self.max.into(),
        };
        whole
            .read(node, cx)
            .and_then(|value| u32::try_from(value).ok())
    }
}

/// A number within bounds; integers are numbers too.
pub(super) struct Real {
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Kind for Real {
    type Value = f64;

    fn shape(&self) -> Shape {
        Shape::Real {
            min: self.min,
            max: self.max,
        }
    }

    fn takes(&self, node: &Node) -> bool {
        is_integer(node) || matches!(node.value, Value::Float(_))
    }

    fn read(&self, node: &Node, cx: &mut Context<'_>) -> Option<f64> {
        let value = match node.value {
            Value::Float(value) => value,
            Value::Integer(value) => value as f64,
            _ => {
                cx.wrong_kind(node, &self.shape());
                return None;
            }
        };
        if (self.min..=self.max).contains(&value) {
            return Some(value);
        }
        out_of_bounds(cx, node, &self.min, &self.max);
        None
    }
}

fn out_of_bounds(
    cx: &mut Context<'_>,
    node: &Node,
    min: &dyn fmt::Display,
    max: &dyn fmt::Display,
) {
    cx.report(
        node.span,
        ProblemKind::OutOfBounds {
            value: node.show(),
            min: min.to_string(),
            max: max.to_string(),
        },
    );
}

/// A type that reads from a number with a unit.
pub(super) trait Quantity: FromStr<Err = ParseError> + fmt::Display + Copy + Ord {
    const WHAT: &'static str;
    const EXAMPLE: &'static str;
    const UNITS: &'static [&'static str];
}

impl Quantity for Span {
    const WHAT: &'static str = "a duration";
    const EXAMPLE: &'static str = "40ms";
    const UNITS: &'static [&'static str] = &["ns", "us", "µs", "ms", "s", "min", "h"];
}

impl Quantity for Rate {
    const WHAT: &'static str = "a rate";
    const EXAMPLE: &'static str = "1.5Mbps";
    const UNITS: &'static [&'static str] = &[
        "bps", "kbps", "Mbps", "Gbps", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "b/s", "kb/s",
        "Mb/s", "Gb/s",
    ];
}

impl Quantity for DataSize {
    const WHAT: &'static str = "an amount of data";
    const EXAMPLE: &'static str = "1500B";
    const UNITS: &'static [&'static str] = &["B", "kB", "KB", "MB", "GB", "KiB", "MiB", "GiB"];
}

/// A number with a unit, within bounds.
pub(super) struct Amount<Q> {
    pub(super) min: Q,
    pub(super) max: Q,
}

impl<Q: Quantity> Kind for Amount<Q> {
    type Value = Q;

    fn shape(&self) -> Shape {
        Shape::Quantity {
            what: Q::WHAT,
            example: Q::EXAMPLE,
            units: Q::UNITS,
            min: self.min.to_string(),
            max: self.max.to_string(),
        }
    }

    fn takes(&self, node: &Node) -> bool {
        is_numeric_text(node)
    }

    fn read(&self, node: &Node, cx: &mut Context<'_>) -> Option<Q> {
        let Some(text) = node.text() else {
            cx.wrong_kind(node, &self.shape());
            return None;
        };
        match text.parse::<Q>() {
            Ok(quantity) if (self.min..=self.max).contains(&quantity) => Some(quantity),
            Ok(_) => {
                out_of_bounds(cx, node, &self.min, &self.max);
                None
            }
            Err(error) => {
                let value = node.show();
                cx.report(node.span, ProblemKind::Quantity { value, error });
                None
            }
        }
    }
}

/// The longest time that any key accepts. Sums of such times stay far from the end of the clock.
pub(super) const LONGEST: Span = Span::from_secs(365 * 24 * 3600);
/// The fastest rate that any key accepts.
pub(super) const FASTEST: Rate = Rate::from_mbps(10_000_000);
/// The most data that any key accepts.
pub(super) const LARGEST: DataSize = DataSize::new(1 << 50);

/// Any time from zero.
pub(super) const SPAN: Amount<Span> = Amount {
    min: Span::ZERO,
    max: LONGEST,
};
/// A tick of a clock of timestamps.
pub(super) const TICK: Amount<Span> = Amount {
    min: Span::from_micros(1),
    max: Span::from_secs(1),
};
/// A time above zero.
pub(super) const POSITIVE_SPAN: Amount<Span> = Amount {
    min: Span::from_nanos(1),
    max: LONGEST,
};
/// A rate above zero.
pub(super) const RATE: Amount<Rate> = Amount {
    min: Rate::from_bps(1),
    max: FASTEST,
};
/// An amount of data above zero.
pub(super) const POSITIVE_BYTES: Amount<DataSize> = Amount {
    min: DataSize::new(1),
    max: LARGEST,
};
/// The size of a packet, from one byte more than an IPv4 header to the maximum of IP.
pub(super) const PACKET: Amount<DataSize> = Amount {
    min: DataSize::new(21),
    max: DataSize::new(65_535),
};
/// A share of a whole.
pub(super) const SHARE: Real = Real { min: 0.0, max: 1.0 };

/// One of several words.
pub(super) struct Choice<T: 'static>(pub(super) &'static [(&'static str, T, &'static str)]);

impl<T: Copy> Kind for Choice<T> {
    type Value = T;

    fn shape(&self) -> Shape {
        Shape::Choice(
            self.0
                .iter()
                .map(|(word, _, doc)| ((*word).into(), (*doc).into()))
                .collect(),
        )
    }

    fn takes(&self, node: &Node) -> bool {
        is_text(node)
    }

    fn read(&self, node: &Node, cx: &mut Context<'_>) -> Option<T> {
        let Some(text) = node.text() else {
            cx.wrong_kind(node, &self.shape());
            return None;
        };
        let found = self.0.iter().find(|(word, ..)| *word == text);
        if found.is_none() {
            cx.report(
                node.span,
                ProblemKind::UnknownChoice {
                    value: node.show(),
                    nearest: nearest(text, self.0.iter().map(|(word, ..)| *word)).map(Into::into),
                    known: self.0.iter().map(|(word, ..)| (*word).into()).collect(),
                    elsewhere: known_as(text),
                },
            );
        }
        found.map(|(_, value, _)| *value)
    }
}

/// A fixed word that stands for a value.
pub(super) struct Word<T>(pub(super) &'static str, pub(super) T);

impl<T: Clone> Kind for Word<T> {
    type Value = T;

    fn shape(&self) -> Shape {
        Shape::Word(self.0)
    }

    fn takes(&self, node: &Node) -> bool {
        node.text() == Some(self.0)
    }

    fn read(&self, node: &Node, cx: &mut Context<'_>) -> Option<T> {
        if self.takes(node) {
            return Some(self.1.clone());
        }
        cx.wrong_kind(node, &self.shape());
        None
    }
}

/// The first of two kinds that accepts the node.
pub(super) struct Either<T, A, B> {
    first: A,
    second: B,
    value: PhantomData<T>,
}

impl<T, A, B> Either<T, A, B> {
    pub(super) const fn of(first: A, second: B) -> Self {
        Self {
            first,
            second,
            value: PhantomData,
        }
    }
}

impl<T, A, B> Kind for Either<T, A, B>
where
    A: Kind,
    B: Kind,
    T: From<A::Value> + From<B::Value>,
{
    type Value = T;

    fn shape(&self) -> Shape {
        let mut shapes = Vec::new();
        for shape in [self.first.shape(), self.second.shape()] {
            match shape {
                Shape::Either(inner) => shapes.extend(inner),
                shape => shapes.push(shape),
            }
        }
        Shape::Either(shapes)
    }

    fn takes(&self, node: &Node) -> bool {
        self.first.takes(node) || self.second.takes(node)
    }

    fn read(&self, node: &Node, cx: &mut Context<'_>) -> Option<T> {
        if self.first.takes(node) {
            self.first.read(node, cx).map(T::from)
        } else if self.second.takes(node) {
            self.second.read(node, cx).map(T::from)
        } else {
            cx.wrong_kind(node, &self.shape());
            None
        }
    }
}

pub(super) struct List<K> {
    pub(super) item: K,
    pub(super) min: usize,
    pub(super) max: usize,
}

impl<K: Kind> Kind for List<K> {
    type Value = Vec<K::Value>;

    fn shape(&self) -> Shape {
        Shape::List(Box::new(self.item.shape()))
    }

    fn takes(&self, node: &Node) -> bool {
        matches!(node.value, Value::List(_))
    }

    fn read(&self, node: &Node, cx: &mut Context<'_>) -> Option<Self::Value> {
        let Some(items) = node.items() else {
            cx.wrong_kind(node, &self.shape());
            return None;
        };
        if !(self.min..=self.max).contains(&items.len()) {
            let (found, min, max) = (items.len(), self.min, self.max);
            cx.report(node.span, ProblemKind::Length { found, min, max });
            return None;
        }
        // Reads all items first, so that the problems of each are reported.
        let read: Vec<_> = items
            .iter()
            .enumerate()
            .map(|(index, item)| cx.within(&item_label(index, item), |cx| self.item.read(item, cx)))
            .collect();
        read.into_iter().collect()
    }
}

/// A value with its span in the text.
pub(super) struct Placed<K>(pub(super) K);

impl<K: Kind> Kind for Placed<K> {
    type Value = (K::Value, SourceSpan);

    fn shape(&self) -> Shape {
        self.0.shape()
    }

    fn takes(&self, node: &Node) -> bool {
        self.0.takes(node)
    }

    fn read(&self, node: &Node, cx: &mut Context<'_>) -> Option<Self::Value> {
        self.0.read(node, cx).map(|value| (value, node.span))
    }
}

/// A capacity: packets, bytes, or unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Packets(u32),
    Bytes(DataSize),
    Unlimited,
}

/// An [`Extent`]: a whole number or `"10 packets"`, an amount of data, or `"unlimited"` where
/// allowed.
pub(super) struct ExtentKind {
    pub(super) min: u32,
    pub(super) unlimited: bool,
}

impl ExtentKind {
    const PACKETS_MAX: u32 = 1_000_000_000;

    fn packets(&self) -> Count {
        Count {
            min: self.min,
            max: Self::PACKETS_MAX,
        }
    }
}

impl Kind for ExtentKind {
    type Value = Extent;

    fn shape(&self) -> Shape {
        let mut shapes = vec![
            self.packets().shape(),
            Shape::Quantity {
                what: "a number of packets",
                example: "10 packets",
                units: &["packets", "packet"],
                min: self.min.to_string(),
                max: Self::PACKETS_MAX.to_string(),
            },
            POSITIVE_BYTES.shape(),
        ];
        if self.unlimited {
            shapes.push(Shape::Word("unlimited"));
        }
        Shape::Either(shapes)
    }

    fn takes(&self, node: &Node) -> bool {
        is_integer(node)
            || is_numeric_text(node)
            || (self.unlimited && node.text() == Some("unlimited"))
    }

    fn read(&self, node: &Node, cx: &mut Context<'_>) -> Option<Extent> {
        let Some(text) = node.text() else {
            if is_integer(node) {
                return self.packets().read(node, cx).map(Extent::Packets);
            }
            cx.wrong_kind(node, &self.shape());
            return None;
        };
        let text = text.trim();
        if self.unlimited && text == "unlimited" {
            return Some(Extent::Unlimited);
        }
        let packets = text
            .strip_suffix("packets")
            .or_else(|| text.strip_suffix("packet"))
            .map(str::trim);
        if let Some(number) = packets {
            let within = number
                .parse::<u32>()
                .ok()
                .filter(|number| (self.min..=Self::PACKETS_MAX).contains(number));
            if within.is_none() {
                out_of_bounds(
                    cx,
                    node,
                    &format_args!("{} packets", self.min),
                    &format_args!("{} packets", Self::PACKETS_MAX),
                );
            }
            return within.map(Extent::Packets);
        }
        if text.parse::<DataSize>().is_ok() {
            return POSITIVE_BYTES.read(node, cx).map(Extent::Bytes);
        }
        cx.wrong_kind(node, &self.shape());
        None
    }
}

/// Any value: one of a sweep, which the swept key checks.
pub(super) struct Anything;

impl Kind for Anything {
    type Value = Node;

    fn shape(&self) -> Shape {
        Shape::Anything
    }

    fn takes(&self, _: &Node) -> bool {
        true
    }

    fn read(&self, node: &Node, _: &mut Context<'_>) -> Option<Node> {
        Some(node.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_expand_the_number_of_the_flow() {
        let template = Template::parse("n{i+1}").unwrap();
        assert_eq!(template.expand(3).as_deref(), Some("n4"));
        assert!(template.varies());
        let template = Template::parse("n{ i - 1 }-x").unwrap();
        assert_eq!(template.expand(3).as_deref(), Some("n2-x"));
        assert_eq!(template.expand(0), None, "below zero");
        assert!(!Template::parse("left").unwrap().varies());
        // A group may have the longest name.
        let longest = "g".repeat(64);
        assert!(is_name(&longest));
        let first = Template::of_group(&longest).expand(0);
        assert_eq!(first, Some(format!("{longest}-0")));
        assert_eq!(Template::parse("tcp-{i}"), Some(Template::of_group("tcp")));
        for bad in [
            "",
            "n{j}",
            "n{i",
            "a b",
            "n{i*2}",
            "n{i+}",
            "{i+99999999999}",
        ] {
            assert_eq!(Template::parse(bad), None, "{bad:?} was accepted");
        }
    }
}
