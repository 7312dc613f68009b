//! Charts as SVG: two linear axes with units, a legend, a title, and a text for those who cannot
//! see it.
//!
//! A [`Chart`] is drawn twice for the two [`Size`]s, since text that shrinks with a picture cannot
//! be read on a phone. Colours are classes (`s0`, `s1`, ..), which [`STYLE`] gives a meaning in
//! light and in dark.

mod draw;
pub(crate) mod scale;

use std::fmt;

/// The colours of series and surroundings, to be put into a page or a picture. The series are told
/// apart by people who do not see all colours too (after Okabe and Ito, 2002).
pub(crate) const STYLE: &str = "\
.chart{--ink:#1d2430;--faint:#5c6675;--grid:#dfe3e8;--s0:#c2410c;--s1:#0369a1;--s2:#0f8a5f;--s3:#8a5bd6;--s4:#7a828e;--bad:#c01030;--paper:#ffffff}
@media (prefers-color-scheme:dark){.chart{--ink:#e8ebf0;--faint:#a3adba;--grid:#343b46;--s0:#ff9a5c;--s1:#5cb8f0;--s2:#4fd1a0;--s3:#bd9cff;--s4:#9aa3b0;--bad:#ff6b81;--paper:#14181f}}
.chart text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;fill:var(--ink)}
.chart .faint{fill:var(--faint)}
.chart .over{paint-order:stroke;stroke:var(--paper);stroke-width:4px;stroke-linejoin:round}
.chart .grid{stroke:var(--grid);stroke-width:1;fill:none}
.chart .axis{stroke:var(--faint);stroke-width:1;fill:none}
.chart .rule{stroke:var(--ink);stroke-width:1.5;fill:none;stroke-dasharray:5 4}
.chart .line{fill:none;stroke-width:2;stroke-linejoin:round}
.chart .thin{stroke-width:1.25}
.chart .dots{fill:none;stroke-linecap:round}
.chart .crosses{fill:none;stroke-width:1.5}
.chart .s0{stroke:var(--s0)}.chart .s1{stroke:var(--s1)}.chart .s2{stroke:var(--s2)}.chart .s3{stroke:var(--s3)}.chart .s4{stroke:var(--s4)}.chart .bad{stroke:var(--bad)}
.chart .bar{stroke:none}
.chart .bar.s0{fill:var(--s0)}.chart .bar.s1{fill:var(--s1)}.chart .bar.s2{fill:var(--s2)}.chart .bar.s3{fill:var(--s3)}.chart .bar.s4{fill:var(--s4)}.chart .bar.bad{fill:var(--bad)}
";

/// Text inside of HTML, SVG, and attributes in double quotes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                // XML has no other control characters, not even escaped.
                c if c.is_control() && !matches!(c, '\n' | '\t') => f.write_str("\u{fffd}")?,
                c => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

/// One of the colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    /// Something went wrong.
    Bad,
    /// A series, by its number; there are five.
    Series(u8),
}

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bad => f.write_str("bad"),
            Self::Series(number) => write!(f, "s{}", number % 5),
        }
    }
}

/// How something is drawn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mark {
    /// Rectangles from (x, y) to (x, y).
    Bars(Vec<[(f64, f64); 2]>),
    /// An × at each point.
    Crosses(Vec<(f64, f64)>),
    /// A dot of this diameter at each point.
    Dots(Vec<(f64, f64)>, f64),
    /// A line through the points, with a hole at every one that is not finite.
    Line(Vec<(f64, f64)>),
    /// As `Line`, and thinner.
    ThinLine(Vec<(f64, f64)>),
}

impl Mark {
    /// Whether there is nothing to be seen of it.
    fn is_empty(&self) -> bool {
        match self {
            Self::Bars(bars) => bars.is_empty(),
            Self::Crosses(points) | Self::Dots(points, _) => points.is_empty(),
            Self::Line(points) | Self::ThinLine(points) => !points
                .iter()
                .any(|(at, value)| at.is_finite() && value.is_finite()),
        }
    }
}

/// Something in a chart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layer {
    /// What the legend says; layers without are not in it.
    pub(crate) name: Option<String>,
    /// In which colour.
    pub(crate) colour: Colour,
    /// What is drawn.
    pub(crate) mark: Mark,
}

/// A horizontal line with a meaning.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    /// Where.
    pub(crate) y: f64,
    /// What it means.
    pub(crate) name: String,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    /// What it shows, with the unit.
    pub(crate) name: String,
    /// Where it begins.
    pub(crate) least: f64,
    /// Where it ends.
    pub(crate) most: f64,
}

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chart {
    /// A name for links and for the parts of the SVG; letters only.
    pub(crate) id: &'static str,
    /// What it is.
    pub(crate) title: String,
    /// What there is to see in it, for those who cannot.
    pub(crate) description: String,
    /// To the right.
    pub(crate) x: Axis,
    /// Upwards.
    pub(crate) y: Axis,
    /// From the back to the front.
    pub(crate) layers: Vec<Layer>,
    /// In front of them.
    pub(crate) rules: Vec<Rule>,
}

/// For what a chart is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// The width of a phone.
    Narrow,
    /// The width of a page.
    Wide,
}

impl Chart {
    /// The chart as an element of a page that has [`STYLE`].
    pub(crate) fn inline(&self, size: Size) -> String {
        draw::svg(self, size, false)
    }

    /// The chart as a file of its own.
    pub(crate) fn standalone(&self) -> String {
        draw::svg(self, Size::Wide, true)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn chart() -> Chart {
        let layer = |name: &str, colour, mark| Layer {
            name: Some(name.into()),
            colour,
            mark,
        };
        Chart {
            id: "small",
            title: "A <small> chart".into(),
            description: "It says \"nothing\" & more.".into(),
            x: Axis {
                name: "time (s)".into(),
                least: 0.0,
                most: 10.0,
            },
            y: Axis {
                name: "rate (Mb/s)".into(),
                least: 0.0,
                most: 4.0,
            },
            layers: vec![
                layer(
                    "a & b",
                    Colour::Series(0),
                    Mark::Line(vec![
                        (0.0, 0.0),
                        (5.0, 4.0),
                        (6.0, f64::NAN),
                        (8.0, 2.0),
                        (10.0, 2.0),
                    ]),
                ),
                layer("dots", Colour::Series(1), Mark::Dots(vec![(5.0, 2.0)], 4.0)),
                layer("lost", Colour::Bad, Mark::Crosses(vec![(2.5, 1.0)])),
                layer(
                    "bars",
                    Colour::Series(2),
                    Mark::Bars(vec![[(0.0, 0.0), (1.0, 2.0)]]),
                ),
                layer("nothing", Colour::Series(3), Mark::Line(Vec::new())),
            ],
            rules: vec![Rule {
                y: 3.0,
                name: "the deadline".into(),
            }],
        }
    }

    #[test]
    fn what_could_end_an_element_or_an_attribute_is_escaped() {
        let text = Escaped("<b a=\"1\" c='2'>&\u{7}").to_string();
        assert_eq!(text, "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;\u{fffd}");
        assert_eq!(Escaped("plain – ü").to_string(), "plain – ü");
    }
}
