//! A chart as the text of an SVG element.

use std::fmt::Write;

use super::scale::{Scale, label, ticks};
use super::{Chart, Escaped, Layer, Mark, STYLE, Size};
use crate::demo::telling::wrap;

/// Where things are, in the units of the picture.
struct Frame {
    width: f64,
    height: f64,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    font: f64,
    x_ticks: u32,
    /// About how wide a letter is.
    letter: f64,
    /// The title in as many lines as it takes.
    title: Vec<String>,
}

/// From one line of text to the next.
const LINE: f64 = 18.0;
/// From one row of the legend to the next.
const ROW: f64 = 20.0;

impl Frame {
    fn new(chart: &Chart, size: Size) -> Self {
        let (width, plot_height, font, x_ticks) = match size {
            Size::Narrow => (400.0, 220.0, 13.0, 5),
            Size::Wide => (860.0, 250.0, 13.0, 10),
        };
        let letter = font * 0.55;
        let left = 58.0;
        let rows = rows(chart, width - left, letter).len();
        // Bold letters are wider.
        let title = wrap(&chart.title, (width / (letter * 1.12)) as usize);
        // Title, legend, the name of the y axis; below the ticks and the name of the x axis.
        let top = 8.0 + title.len() as f64 * LINE + rows as f64 * ROW + 24.0;
        Self {
            width,
            height: top + plot_height + 48.0,
            left,
            right: width - 14.0,
            top,
            bottom: top + plot_height,
            font,
            x_ticks,
            letter,
            title,
        }
    }
}

/// The rows of the legend.
fn rows(chart: &Chart, width: f64, letter: f64) -> Vec<Vec<&Layer>> {
    let mut rows: Vec<Vec<&Layer>> = Vec::new();
    let mut used = f64::INFINITY;
    for layer in &chart.layers {
        let Some(name) = layer.name.as_ref().filter(|_| !layer.mark.is_empty()) else {
            continue;
        };
        let needs = entry_width(name, letter);
        if used + needs > width {
            rows.push(Vec::new());
            used = 0.0;
        }
        used += needs;
        if let Some(row) = rows.last_mut() {
            row.push(layer);
        }
    }
    rows
}

fn entry_width(name: &str, letter: f64) -> f64 {
    name.chars().count() as f64 * letter + 38.0
}

pub(super) fn svg(chart: &Chart, size: Size, is_standalone: bool) -> String {
    let frame = Frame::new(chart, size);
    let suffix = match size {
        Size::Narrow => "narrow",
        Size::Wide => "wide",
    };
    let id = format!("{}-{suffix}", chart.id);
    let mut out = String::new();
    let Frame {
        width,
        height,
        font,
        ..
    } = frame;
    let namespace = if is_standalone {
        format!(" xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\"")
    } else {
        String::new()
    };
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "<svg{namespace} class=\"chart {suffix}\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-labelledby=\"{id}-title {id}-text\" font-size=\"{font}\">\n\
         <title id=\"{id}-title\">{}</title>\n<desc id=\"{id}-text\">{}</desc>",
        Escaped(&chart.title),
        Escaped(&chart.description),
    );
    if is_standalone {
        let _ = writeln!(out, "<style>{STYLE}</style>");
    }
    for (place, line) in frame.title.iter().enumerate() {
        let _ = writeln!(
            out,
            "<text x=\"0\" y=\"{}\" font-weight=\"600\">{}</text>",
            font + place as f64 * LINE,
            Escaped(line)
        );
    }
    legend(&mut out, chart, &frame);
    let x = Scale::new(chart.x.least, chart.x.most, frame.left, frame.right);
    let y = Scale::new(chart.y.least, chart.y.most, frame.bottom, frame.top);
    axes(&mut out, chart, &frame, &x, &y);
    for layer in &chart.layers {
        draw(&mut out, layer, &x, &y);
    }
    for rule in &chart.rules {
        let at = y.at(rule.y);
        // On the side where there is more room.
        let is_low = at > f64::midpoint(frame.top, frame.bottom);
        let baseline = if is_low { at + 16.0 } else { at - 5.0 };
        let _ = writeln!(
            out,
            "<path class=\"rule\" d=\"M{} {at:.1}H{}\"/>\
             <text class=\"over\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            frame.left,
            frame.right,
            frame.right - 4.0,
            baseline,
            Escaped(&rule.name)
        );
    }
    out.push_str("</svg>\n");
    out
}

fn legend(out: &mut String, chart: &Chart, frame: &Frame) {
    let mut y = 22.0 + frame.title.len() as f64 * LINE;
    for row in rows(chart, frame.width - frame.left, frame.letter) {
        let mut x = 0.0;
        for layer in row {
            let name = layer.name.as_deref().unwrap_or_default();
            let colour = layer.colour;
            let sample = match &layer.mark {
                Mark::Bars(_) => format!(
                    "<path class=\"bar {colour}\" d=\"M{} {}h14v10h-14z\"/>",
                    x + 2.0,
                    y - 9.0
                ),
                Mark::Crosses(_) => format!(
                    "<path class=\"crosses {colour}\" d=\"{}\"/>",
                    cross(x + 9.0, y - 4.0)
                ),
                Mark::Dots(_, diameter) => format!(
                    "<path class=\"dots {colour}\" stroke-width=\"{:.1}\" d=\"M{} {}h0\"/>",
                    diameter.max(4.0) * 1.5,
                    x + 9.0,
                    y - 4.0
                ),
                Mark::Line(_) | Mark::ThinLine(_) => {
                    format!("<path class=\"line {colour}\" d=\"M{x} {}h18\"/>", y - 4.0)
                }
            };
            let _ = writeln!(
                out,
                "{sample}<text x=\"{}\" y=\"{y}\">{}</text>",
                x + 23.0,
                Escaped(name)
            );
            x += entry_width(name, frame.letter);
        }
        y += ROW;
    }
}

fn axes(out: &mut String, chart: &Chart, frame: &Frame, x: &Scale, y: &Scale) {
    let Frame {
        left,
        right,
        top,
        bottom,
        ..
    } = *frame;
    let across = ticks(chart.x.least, chart.x.most, frame.x_ticks);
    let up = ticks(chart.y.least, chart.y.most, 5);
    let mut grid = String::new();
    for tick in &up {
        let _ = write!(grid, "M{left} {:.1}H{right}", y.at(*tick));
    }
    let _ = writeln!(
        out,
        "<path class=\"grid\" d=\"{grid}\"/>\
         <path class=\"axis\" d=\"M{left} {top}V{bottom}H{right}\"/>"
    );
    for tick in up {
        let _ = writeln!(
            out,
            "<text class=\"faint\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 7.0,
            y.at(tick) + 4.5,
            label(tick)
        );
    }
    for tick in across {
        let _ = writeln!(
            out,
            "<text class=\"faint\" x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            x.at(tick),
            bottom + 18.0,
            label(tick)
        );
    }
    let _ = writeln!(
        out,
        "<text class=\"faint\" x=\"0\" y=\"{}\">{}</text>\
         <text class=\"faint\" x=\"{right}\" y=\"{}\" text-anchor=\"end\">{}</text>",
        top - 10.0,
        Escaped(&chart.y.name),
        bottom + 38.0,
        Escaped(&chart.x.name)
    );
}

fn draw(out: &mut String, layer: &Layer, x: &Scale, y: &Scale) {
    let colour = layer.colour;
    let (class, path) = match &layer.mark {
        Mark::Bars(bars) => ("bar", bars.iter().map(|bar| rectangle(bar, x, y)).collect()),
        Mark::Crosses(points) => (
            "crosses",
            points
                .iter()
                .map(|(at, value)| cross(x.at(*at), y.at(*value)))
                .collect(),
        ),
        Mark::Dots(points, diameter) => {
            let path: String = points
                .iter()
                .map(|(at, value)| format!("M{:.1} {:.1}h0", x.at(*at), y.at(*value)))
                .collect();
            if !path.is_empty() {
                let _ = writeln!(
                    out,
                    "<path class=\"dots {colour}\" stroke-width=\"{diameter}\" d=\"{path}\"/>"
                );
            }
            return;
        }
        Mark::Line(points) => ("line", line(points, x, y)),
        Mark::ThinLine(points) => ("line thin", line(points, x, y)),
    };
    if !path.is_empty() {
        let _ = writeln!(out, "<path class=\"{class} {colour}\" d=\"{path}\"/>");
    }
}

fn line(points: &[(f64, f64)], x: &Scale, y: &Scale) -> String {
    let mut path = String::new();
    let mut is_down = false;
    for (at, value) in points {
        if !(at.is_finite() && value.is_finite()) {
            is_down = false;
            continue;
        }
        let command = if is_down { 'L' } else { 'M' };
        is_down = true;
        let _ = write!(path, "{command}{:.1} {:.1}", x.at(*at), y.at(*value));
    }
    path
}

fn cross(x: f64, y: f64) -> String {
    format!("M{:.1} {:.1}l6 6m0 -6l-6 6", x - 3.0, y - 3.0)
}

fn rectangle(bar: &[(f64, f64); 2], x: &Scale, y: &Scale) -> String {
    let [(x0, y0), (x1, y1)] = *bar;
    format!(
        "M{:.1} {:.1}H{:.1}V{:.1}H{:.1}z",
        x.at(x0),
        y.at(y0),
        x.at(x1),
        y.at(y1),
        x.at(x0)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::plot::tests::chart;

    #[test]
    fn a_small_chart_has_these_parts() {
        let svg = chart().inline(Size::Wide);
        // Left 58, right 846; two rows are not needed for the legend: the top is 26 + 20 + 24 = 70,
        // the bottom 320.
        for part in [
            "<svg class=\"chart wide\" viewBox=\"0 0 860 368\" role=\"img\" aria-labelledby=\"small-wide-title small-wide-text\"",
            "<title id=\"small-wide-title\">A &lt;small&gt; chart</title>",
            "<desc id=\"small-wide-text\">It says &quot;nothing&quot; &amp; more.</desc>",
            ">a &amp; b</text>",
            "<path class=\"line s0\" d=\"M58.0 320.0L452.0 70.0M688.4 195.0L846.0 195.0\"/>",
            "<path class=\"dots s1\" stroke-width=\"4\" d=\"M452.0 195.0h0\"/>",
            "<path class=\"crosses bad\" d=\"M252.0 254.5l6 6m0 -6l-6 6\"/>",
            "<path class=\"bar s2\" d=\"M58.0 320.0H136.8V195.0H58.0z\"/>",
            "<path class=\"rule\" d=\"M58 132.5H846\"/>",
            ">the deadline</text>",
            ">rate (Mb/s)</text>",
            ">time (s)</text>",
        ] {
            assert!(svg.contains(part), "{part}\nis not in\n{svg}");
        }
        assert!(
            !svg.contains("xmlns") && !svg.contains(">nothing</text>"),
            "{svg}"
        );
    }

    #[test]
    fn a_picture_of_its_own_brings_its_colours() {
        let svg = chart().standalone();
        assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"860\""));
        assert!(svg.contains("<style>") && svg.contains("prefers-color-scheme:dark"));
        assert!(svg.ends_with("</svg>\n"));
    }

    #[test]
    fn legends_that_do_not_fit_take_more_rows() {
        let chart = chart();
        let entries = |width| {
            rows(&chart, width, 7.0)
                .iter()
                .map(Vec::len)
                .collect::<Vec<_>>()
        };
        assert_eq!(entries(800.0), [4]);
        assert_eq!(entries(150.0), [2, 2]);
        assert_eq!(entries(1.0), [1, 1, 1, 1], "at least one in a row");
    }

    #[test]
    fn narrow_charts_are_as_wide_as_a_phone() {
        let svg = chart().inline(Size::Narrow);
        assert!(svg.starts_with("<svg class=\"chart narrow\" viewBox=\"0 0 400 "));
    }
}
