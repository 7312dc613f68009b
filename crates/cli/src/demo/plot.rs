//! Charts as SVG: two linear axes with units, a legend, a title, and a text for those who cannot
//! see it.

use std::collections::BTreeSet;
use std::fmt;

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::element::DashedPathElement;
use plotters::prelude::*;

/// The size of a chart, and of the column at its right that has the legend.
const SIZE: (u32, u32) = (860, 380);
const LEGEND: u32 = 200;
/// From one row of the legend to the next.
const ROW: i32 = 20;
const INK: RGBColor = RGBColor(0x1d, 0x24, 0x30);
/// After Okabe and Ito (2002): people who do not see all colours can tell them apart as well.
const SERIES: [RGBColor; 5] = [
    RGBColor(0xc2, 0x41, 0x0c),
    RGBColor(0x03, 0x69, 0xa1),
    RGBColor(0x0f, 0x8a, 0x5f),
    RGBColor(0x8a, 0x5b, 0xd6),
    RGBColor(0x7a, 0x82, 0x8e),
];

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

impl Colour {
    fn rgb(self) -> RGBColor {
        match self {
            Self::Bad => RGBColor(0xc0, 0x10, 0x30),
            Self::Series(number) => SERIES[usize::from(number) % SERIES.len()],
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
    /// A dot of this radius at each point.
    Dots(Vec<(f64, f64)>, u32),
    /// A line of this width through the points, with a hole at every one that is not finite.
    Curve(Vec<(f64, f64)>, u32),
}

impl Mark {
    /// The points with finite values; of a bar its upper end.
    pub(crate) fn points(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let (points, bars): (&[_], &[_]) = match self {
            Self::Bars(bars) => (&[], bars),
            Self::Crosses(points) | Self::Dots(points, _) | Self::Curve(points, _) => (points, &[]),
        };
        let all = points.iter().chain(bars.iter().map(|[_, upper]| upper));
        all.copied().filter(|(x, y)| x.is_finite() && y.is_finite())
    }
}

/// Something in a chart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layer {
    /// What the legend says.
    pub(crate) name: String,
    /// In which colour.
    pub(crate) colour: Colour,
    /// What is drawn.
    pub(crate) mark: Mark,
}

impl Layer {
    pub(crate) fn new(name: impl Into<String>, colour: Colour, mark: Mark) -> Self {
        Self {
            name: name.into(),
            colour,
            mark,
        }
    }
}

/// A horizontal line with a meaning.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    /// Where.
    pub(crate) y: f64,
    /// What it means.
    pub(crate) name: &'static str,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    /// What it shows, with the unit.
    pub(crate) name: &'static str,
    /// Where it begins.
    pub(crate) least: f64,
    /// Where it ends.
    pub(crate) most: f64,
}

impl Axis {
    /// The ends of the axis; one without extent shows its only value at its beginning.
    fn range(&self) -> std::ops::Range<f64> {
        let most = if self.most > self.least {
            self.most
        } else {
            self.least + 1.0
        };
        self.least..most
    }

    /// Values beyond the ends are drawn at the ends.
    fn within(&self, value: f64) -> f64 {
        let ends = self.range();
        value.clamp(ends.start, ends.end)
    }
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

/// A tick as text, with a minus sign and without needless decimals.
fn label(value: &f64) -> String {
    // No "-0".
    let rounded = (value * 1e6).round() / 1e6 + 0.0;
    rounded.to_string().replace('-', "\u{2212}")
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Plot<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

impl Chart {
    /// The chart as an SVG element, which is a file of its own too.
    pub(crate) fn svg(&self) -> String {
        let mut drawn = String::new();
        let root = SVGBackend::with_string(&mut drawn, SIZE).into_drawing_area();
        // Writing to a string does not fail.
        let _ = self.draw(&root).and_then(|()| root.present());
        drop(root);
        let inside = drawn.split_once('>').map_or("", |(_, inside)| inside);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" \
             aria-labelledby=\"{id}-title {id}-text\">\n\
             <title id=\"{id}-title\">{}</title>\n<desc id=\"{id}-text\">{}</desc>{inside}",
            SIZE.0,
            SIZE.1,
            Escaped(&self.title),
            Escaped(&self.description),
            id = self.id,
        )
    }

    fn draw(&self, root: &Area<'_>) -> Drawn {
        root.fill(&WHITE)?;
        let titled = root.titled(&self.title, ("sans-serif", 17).into_font().color(&INK))?;
        let (left, right) = titled.split_horizontally(SIZE.0 - LEGEND);
        let mut plot = ChartBuilder::on(&left)
            .margin(8)
            .x_label_area_size(40)
            .y_label_area_size(56)
            .build_cartesian_2d(self.x.range(), self.y.range())?;
        plot.configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .label_style(("sans-serif", 13).into_font().color(&INK))
            .x_label_formatter(&label)
            .y_label_formatter(&label)
            .x_desc(self.x.name)
            .y_desc(self.y.name)
            .draw()?;
        for layer in &self.layers {
            self.mark(&mut plot, layer)?;
        }
        for rule in &self.rules {
            let y = self.y.within(rule.y);
            let ends = [(self.x.range().start, y), (self.x.range().end, y)];
            plot.draw_series([DashedPathElement::new(ends, 5, 4, INK.stroke_width(2))])?;
        }
        self.legend(&right)
    }

    fn mark(&self, plot: &mut Plot<'_, '_>, layer: &Layer) -> Drawn {
        let at = |(x, y): (f64, f64)| (self.x.within(x), self.y.within(y));
        let colour = layer.colour.rgb();
        match &layer.mark {
            Mark::Bars(bars) => {
                let bar = |bar: &[_; 2]| Rectangle::new(bar.map(at), colour.filled());
                plot.draw_series(bars.iter().map(bar)).map(drop)
            }
            Mark::Crosses(_) => {
                let cross = |point| Cross::new(at(point), 3, colour.stroke_width(2));
                plot.draw_series(layer.mark.points().map(cross)).map(drop)
            }
            Mark::Dots(_, radius) => {
                let dot = |point| Circle::new(point, *radius, colour.filled());
                // One is enough where several fall on one place.
                let mut taken = BTreeSet::new();
                let mut points: Vec<_> = layer.mark.points().map(at).collect();
                points.retain(|point| taken.insert(plot.backend_coord(point)));
                plot.draw_series(points.into_iter().map(dot)).map(drop)
            }
            Mark::Curve(points, width) => {
                let parts = points.split(|(x, y)| !(x.is_finite() && y.is_finite()));
                let line = |part: &[(f64, f64)]| {
                    let points: Vec<_> = part.iter().copied().map(at).collect();
                    PathElement::new(points, colour.stroke_width(*width))
                };
                plot.draw_series(parts.filter(|part| !part.is_empty()).map(line))
                    .map(drop)
            }
        }
    }

    /// A sample and a name for each layer that has something to show, and for each rule.
    fn legend(&self, area: &Area<'_>) -> Drawn {
        let mut y = ROW;
        let mut name = |sample: &dyn Fn(i32) -> Drawn, name: &str| {
            sample(y)?;
            let style = ("sans-serif", 13).into_font().color(&INK);
            area.draw(&Text::new(name.to_owned(), (24, y - 8), style))?;
            y += ROW;
            Ok(())
        };
        let shown = |layer: &&Layer| layer.mark.points().next().is_some();
        for layer in self.layers.iter().filter(shown) {
            let colour = layer.colour.rgb();
            let sample = |y| match &layer.mark {
                Mark::Bars(_) => {
                    area.draw(&Rectangle::new([(2, y - 6), (16, y + 6)], colour.filled()))
                }
                Mark::Crosses(_) => area.draw(&Cross::new((9, y), 3, colour.stroke_width(2))),
                Mark::Dots(..) => area.draw(&Circle::new((9, y), 4, colour.filled())),
                Mark::Curve(_, width) => area.draw(&PathElement::new(
                    [(0, y), (18, y)],
                    colour.stroke_width(*width),
                )),
            };
            name(&sample, &layer.name)?;
        }
        for rule in &self.rules {
            let style = INK.stroke_width(2);
            let sample = |y| area.draw(&DashedPathElement::new([(0, y), (18, y)], 5, 4, style));
            name(&sample, rule.name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        let line = vec![
            (0.0, 0.0),
            (5.0, 4.0),
            (6.0, f64::NAN),
            (8.0, 2.0),
            (10.0, 2.0),
        ];
        Chart {
            id: "small",
            title: "A <small> chart".into(),
            description: "It says \"nothing\" & more.".into(),
            x: Axis {
                name: "time (s)",
                least: 0.0,
                most: 10.0,
            },
            y: Axis {
                name: "rate (Mb/s)",
                least: 0.0,
                most: 4.0,
            },
            layers: vec![
                Layer::new("a & b", Colour::Series(0), Mark::Curve(line, 2)),
                Layer::new(
                    "dots",
                    Colour::Series(1),
                    Mark::Dots(vec![(5.0, 2.0), (6.0, 9.0)], 2),
                ),
                Layer::new("lost", Colour::Bad, Mark::Crosses(vec![(2.5, 1.0)])),
                Layer::new(
                    "bars",
                    Colour::Series(2),
                    Mark::Bars(vec![[(0.0, 0.0), (1.0, 2.0)]]),
                ),
                Layer::new("nothing", Colour::Series(3), Mark::Curve(Vec::new(), 2)),
            ],
            rules: vec![Rule {
                y: 3.0,
                name: "the deadline",
            }],
        }
    }

    /// How often `part` is in the chart, and in its legend.
    #[test]
    fn a_small_chart_has_these_parts() {
        let svg = chart().svg();
        for (part, times) in [
            (
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 860 380\"",
                1,
            ),
            ("<title id=\"small-title\">A &lt;small&gt; chart</title>", 1),
            (
                "<desc id=\"small-text\">It says &quot;nothing&quot; &amp; more.</desc>",
                1,
            ),
            ("a &amp; b", 1),
            ("the deadline", 1),
            ("rate (Mb/s)", 1),
            ("time (s)", 1),
            ("nothing", 1),
            ("stroke=\"#C2410C\"", 2 + 1),
            ("<circle", 2 + 1),
            ("fill=\"#0F8A5F\"", 1 + 1),
            ("</svg>", 1),
        ] {
            assert_eq!(svg.matches(part).count(), times, "{part}\nin\n{svg}");
        }
        assert!(svg.ends_with("</svg>\n"), "{svg}");
    }

    #[test]
    fn ticks_have_no_needless_decimals() {
        let labels = [-200.0, -0.0, 0.1 + 0.2, 12.0].map(|value| label(&value));
        assert_eq!(labels, ["\u{2212}200", "0", "0.3", "12"]);
    }

    #[test]
    fn values_beyond_the_axes_are_at_their_ends() {
        let axis = Axis {
            name: "",
            least: 2.0,
            most: 2.0,
        };
        assert_eq!(axis.range(), 2.0..3.0);
        assert_eq!(
            [0.0, 2.5, 9.0].map(|value| axis.within(value)),
            [2.0, 2.5, 3.0]
        );
    }

    #[test]
    fn what_could_end_an_element_or_an_attribute_is_escaped() {
        let text = Escaped("<b a=\"1\" c='2'>&\u{7}").to_string();
        assert_eq!(text, "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;\u{fffd}");
        assert_eq!(Escaped("plain – ü").to_string(), "plain – ü");
    }
}
