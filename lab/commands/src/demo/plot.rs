//! Charts as SVG: two linear axes with units, a legend, a title, and a text alternative.

use std::collections::BTreeSet;
use std::fmt;

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::element::DashedPathElement;
use plotters::prelude::*;

/// The size of a chart on the page, where it is readable on a narrow screen.
const NARROW: (u32, u32) = (400, 300);
/// The size of a chart in a file of its own.
const WIDE: (u32, u32) = (860, 400);
/// The least width of an entry of the legend, and its height.
const ENTRY: (u32, u32) = (190, 20);
const INK: RGBColor = RGBColor(0x1d, 0x24, 0x30);
/// From Okabe and Ito (2002): distinguishable with colour blindness. Each colour has a contrast of
/// at least 3 with the light and the dark page.
const SERIES: [RGBColor; 5] = [
    RGBColor(0xc2, 0x41, 0x0c),
    RGBColor(0x03, 0x69, 0xa1),
    RGBColor(0x0f, 0x8a, 0x5f),
    RGBColor(0x8a, 0x5b, 0xd6),
    RGBColor(0x7a, 0x82, 0x8e),
];

/// Text escaped for HTML, SVG, and attributes in double quotes.
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
                // XML allows no other control characters, not even escaped.
                c if c.is_control() && !matches!(c, '\n' | '\t') => f.write_str("\u{fffd}")?,
                c => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

/// The colour of a series, by its number; there are five.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Colour(pub(crate) u8);

impl Colour {
    fn rgb(self) -> RGBColor {
        SERIES[usize::from(self.0) % SERIES.len()]
    }
}

/// A way to draw data.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mark {
    /// An × at each point.
    Crosses(Vec<(f64, f64)>),
    /// A dot of this radius at each point.
    Dots(Vec<(f64, f64)>, u32),
    /// A line of this width through the points, interrupted at each point that is not finite.
    Curve(Vec<(f64, f64)>, u32),
}

impl Mark {
    /// The points with finite values.
    pub(crate) fn points(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let (Self::Crosses(all) | Self::Dots(all, _) | Self::Curve(all, _)) = self;
        let all = all.iter();
        all.copied().filter(|(x, y)| x.is_finite() && y.is_finite())
    }
}

/// A series of a chart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layer {
    /// Its name in the legend.
    pub(crate) name: String,
    /// Its colour.
    pub(crate) colour: Colour,
    /// Its data, and how they are drawn.
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

/// A labelled horizontal line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    /// Its vertical position.
    pub(crate) y: f64,
    /// Its label.
    pub(crate) name: &'static str,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    /// Its quantity, with the unit.
    pub(crate) name: &'static str,
    /// Where it begins.
    pub(crate) least: f64,
    /// Where it ends.
    pub(crate) most: f64,
}

impl Axis {
    /// The limits of the axis. If they are equal, the axis is one unit long.
    fn range(&self) -> std::ops::Range<f64> {
        let most = if self.most > self.least {
            self.most
        } else {
            self.least + 1.0
        };
        self.least..most
    }

    /// Clamps a value to the limits of the axis.
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
    /// Its title.
    pub(crate) title: String,
    /// Its content in words, for people who cannot see it.
    pub(crate) description: String,
    /// The horizontal axis.
    pub(crate) x: Axis,
    /// The vertical axis.
    pub(crate) y: Axis,
    /// The series, from the back to the front.
    pub(crate) layers: Vec<Layer>,
    /// Lines in front of the series.
    pub(crate) rules: Vec<Rule>,
}

/// A tick as text, with a minus sign and without needless decimals.
fn label(value: &f64) -> String {
    // Avoids "-0".
    let rounded = (value * 1e6).round() / 1e6 + 0.0;
    rounded.to_string().replace('-', "\u{2212}")
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Plot<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

impl Chart {
    /// The chart as an element of a page, in the colours of the page.
    pub(crate) fn element(&self) -> String {
        self.svg(NARROW).replace("#1D2430", "currentColor")
    }

    /// The chart as a separate file.
    pub(crate) fn file(&self) -> String {
        let ground = "<rect width=\"100%\" height=\"100%\" fill=\"#FFFFFF\"/>\n";
        self.svg(WIDE)
            .replacen("</desc>", &format!("</desc>\n{ground}"), 1)
    }

    fn svg(&self, size: (u32, u32)) -> String {
        let mut drawn = String::new();
        let mut dots = String::new();
        let root = SVGBackend::with_string(&mut drawn, size).into_drawing_area();
        // Writing to a string does not fail.
        let _ = self
            .draw(&root, size, &mut dots)
            .and_then(|()| root.present());
        drop(root);
        let inside = drawn.split_once('>').map_or("", |(_, inside)| inside);
        let inside = inside.trim_end().trim_end_matches("</svg>");
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" \
             aria-labelledby=\"{id}-title {id}-text\">\n\
             <title id=\"{id}-title\">{}</title>\n<desc id=\"{id}-text\">{}</desc>{inside}{dots}</svg>\n",
            size.0,
            size.1,
            Escaped(&self.title),
            Escaped(&self.description),
            id = self.id,
        )
    }

    fn draw(&self, root: &Area<'_>, (width, height): (u32, u32), dots: &mut String) -> Drawn {
        let titled = root.titled(&self.title, ("sans-serif", 14).into_font().color(&INK))?;
        let columns = (width / ENTRY.0).max(1);
        let entries = self.shown().count() + self.rules.len();
        let rows = u32::try_from(entries).unwrap_or(0).div_ceil(columns);
        let title = height.saturating_sub(titled.dim_in_pixel().1);
        let (above, below) = titled.split_vertically(height.saturating_sub(title + rows * ENTRY.1));
        let mut plot = ChartBuilder::on(&above)
            .margin(6)
            .margin_right(12)
            .x_label_area_size(36)
            .y_label_area_size(46)
            .build_cartesian_2d(self.x.range(), self.y.range())?;
        plot.configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(INK.mix(0.2))
            .axis_style(INK)
            .label_style(("sans-serif", 12).into_font().color(&INK))
            .x_label_formatter(&label)
            .y_label_formatter(&label)
            .x_desc(self.x.name)
            .y_desc(self.y.name)
            .draw()?;
        for rule in &self.rules {
            let y = self.y.within(rule.y);
            let ends = [(self.x.range().start, y), (self.x.range().end, y)];
            plot.draw_series([DashedPathElement::new(ends, 5, 4, INK.stroke_width(2))])?;
        }
        for layer in &self.layers {
            self.mark(&mut plot, layer, dots)?;
        }
        self.legend(&below, columns)
    }

    fn mark(&self, plot: &mut Plot<'_, '_>, layer: &Layer, dots: &mut String) -> Drawn {
        let at = |(x, y): (f64, f64)| (self.x.within(x), self.y.within(y));
        let colour = layer.colour.rgb();
        match &layer.mark {
            Mark::Crosses(_) => {
                let cross = |point| Cross::new(at(point), 3, colour.stroke_width(2));
                plot.draw_series(layer.mark.points().map(cross)).map(drop)
            }
            Mark::Dots(_, radius) => {
                // One path of zero-length lines with round ends: a circle for each of thousands of
                // dots would need ten times as many bytes.
                let taken: BTreeSet<_> = layer
                    .mark
                    .points()
                    .map(|point| plot.backend_coord(&at(point)))
                    .collect();
                let path: String = taken.iter().map(|(x, y)| format!("M{x} {y}h0")).collect();
                let RGBColor(red, green, blue) = colour;
                *dots += &format!(
                    "<path d=\"{path}\" stroke=\"#{red:02X}{green:02X}{blue:02X}\" \
                     stroke-width=\"{}\" stroke-linecap=\"round\"/>\n",
                    radius * 2
                );
                Ok(())
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

    /// The layers that contain points.
    fn shown(&self) -> impl Iterator<Item = &Layer> {
        let shown = |layer: &&Layer| layer.mark.points().next().is_some();
        self.layers.iter().filter(shown)
    }

    /// A sample and a name for each layer that contains points, and for each rule.
    fn legend(&self, area: &Area<'_>, columns: u32) -> Drawn {
        let width = area.dim_in_pixel().0 / columns;
        let mut count = 0;
        let mut position = || {
            let (column, row) = (count % columns, count / columns);
            count += 1;
            let middle = row * ENTRY.1 + ENTRY.1 / 2;
            (8 + (column * width) as i32, middle as i32)
        };
        let name = |(x, y): (i32, i32), name: &str| {
            let style = ("sans-serif", 12).into_font().color(&INK);
            area.draw(&Text::new(name.to_owned(), (x + 24, y - 6), style))
        };
        for layer in self.shown() {
            let (x, y) = position();
            let colour = layer.colour.rgb();
            match &layer.mark {
                Mark::Crosses(_) => area.draw(&Cross::new((x + 9, y), 3, colour.stroke_width(2))),
                Mark::Dots(..) => area.draw(&Circle::new((x + 9, y), 4, colour.filled())),
                Mark::Curve(_, width) => area.draw(&PathElement::new(
                    [(x, y), (x + 18, y)],
                    colour.stroke_width(*width),
                )),
            }?;
            name((x, y), &layer.name)?;
        }
        for rule in &self.rules {
            let (x, y) = position();
            let ends = [(x, y), (x + 18, y)];
            area.draw(&DashedPathElement::new(ends, 5, 4, INK.stroke_width(2)))?;
            name((x, y), rule.name)?;
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
                Layer::new("a & b", Colour(0), Mark::Curve(line, 2)),
                Layer::new(
                    "dots",
                    Colour(1),
                    Mark::Dots(vec![(5.0, 2.0), (6.0, 9.0)], 2),
                ),
                Layer::new("lost", Colour(2), Mark::Crosses(vec![(2.5, 1.0)])),
                Layer::new("nothing", Colour(3), Mark::Curve(Vec::new(), 2)),
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
        let svg = chart().element();
        for (part, times) in [
            (
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 400 300\"",
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
            ("<circle", 1),
            ("h0M", 1),
            ("h0\" stroke=\"#0369A1\" stroke-width=\"4\"", 1),
            ("#1D2430", 0),
            ("#FFFFFF", 0),
            ("</svg>", 1),
        ] {
            assert_eq!(svg.matches(part).count(), times, "{part}\nin\n{svg}");
        }
        assert!(svg.ends_with("</svg>\n"), "{svg}");
        let file = chart().file();
        assert!(file.contains("viewBox=\"0 0 860 400\"") && !file.contains("currentColor"));
        assert_eq!(file.matches("fill=\"#FFFFFF\"").count(), 1);
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
    fn characters_that_end_an_element_or_attribute_are_escaped() {
        let text = Escaped("<b a=\"1\" c='2'>&\u{7}").to_string();
        assert_eq!(text, "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;\u{fffd}");
        assert_eq!(Escaped("plain – ü").to_string(), "plain – ü");
    }
}
