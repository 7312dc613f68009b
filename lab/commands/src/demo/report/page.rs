//! The page around the charts.

use std::fmt::Write;

use super::super::clip::Kind;
use super::super::metrics::Metrics;
use super::super::plot::Escaped;
use super::super::recording::Recording;
use super::super::summary::{decimals, situation};
use super::super::thumbnails;
use super::super::viewer::{Delay, Transport, Viewing, milliseconds, transports};
use super::figures;
use crate::numbers::{percent, rate, spaced, thousands};

const PAGE_STYLE: &str = "\
:root{color-scheme:light dark;--page:#ffffff;--text:#1d2430;--soft:#5c6675;--line:#dfe3e8;--card:#f6f7f9;--warn:#c01030;--warn-page:#fdecef}
@media (prefers-color-scheme:dark){:root{--page:#14181f;--text:#e8ebf0;--soft:#a3adba;--line:#343b46;--card:#1c222b;--warn:#ff8095;--warn-page:#3a1820}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--text);font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}
main{max-width:1000px;margin:0 auto;padding:24px}
h1{font-size:1.7rem;line-height:1.2;margin:0 0 8px}
h2{font-size:1.2rem;margin:40px 0 8px}
p{margin:8px 0;max-width:70ch}
.soft{color:var(--soft)}
.numbers{display:grid;grid-template-columns:repeat(auto-fit,minmax(130px,1fr));gap:12px;margin:20px 0}
.numbers div{background:var(--card);border-radius:8px;padding:12px 14px}
.numbers b{display:block;font-size:1.5rem;line-height:1.3}
.warn{background:var(--warn-page);color:var(--warn);border-radius:8px;padding:12px 14px}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,380px),1fr));gap:8px 24px}
figure{margin:16px 0}
figcaption{color:var(--soft);font-size:.92rem;margin-top:2px}
svg{width:100%;height:auto;display:block}
svg text{font-family:inherit}
.moments{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,290px),1fr));gap:12px}
.moments section{background:var(--card);border-radius:8px;padding:12px 14px}
.moments h3{font-size:1rem;margin:0 0 8px}
.pair{display:flex;gap:8px}
.pair figure{flex:1;margin:0}
.pair img,.pair .none{width:100%;height:auto;aspect-ratio:16/9;border-radius:4px;display:block;background:#000}
pre{background:var(--card);border-radius:8px;padding:12px 14px;white-space:pre-wrap;overflow-wrap:anywhere;margin:8px 0}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:8px 0}
th,td{text-align:right;padding:5px 0 5px 16px;border-bottom:1px solid var(--line)}
th:first-child,td:first-child{text-align:left;padding-left:0}
caption{text-align:left;color:var(--soft)}
th{font-weight:600;color:var(--soft)}
@media (max-width:640px){main{padding:16px}h1{font-size:1.4rem}table{width:100%;font-size:.86rem}th,td{padding-left:7px}}
@media print{main{max-width:none}figure{break-inside:avoid}}
";

/// The whole page. It loads no other file and runs no script. `command` is the command that made
/// it.
pub(crate) fn page(recording: &Recording, metrics: &Metrics, command: &str) -> String {
    let mut out = String::new();
    let transports = transports(recording);
    let title = headline(&transports);
    // Writing to a string does not fail.
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Comity demo: {0}</title>\n<style>\n{PAGE_STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>{0}</h1>\n<p class=\"soft\">Video with deadlines beside greedy TCP-like flows: {1}</p>\n",
        Escaped(&title),
        Escaped(&situation(&recording.setup)),
    );
    warning(&mut out, recording);
    viewings(&mut out, recording, &transports);
    moments(&mut out, recording, &transports);
    out.push_str("<h2>Over time</h2>\n<div class=\"charts\">\n");
    for chart in figures::all(recording) {
        let _ = write!(
            out,
            "<figure id=\"{}\">\n{}<figcaption>{}</figcaption>\n</figure>\n",
            chart.id,
            chart.element(),
            Escaped(&chart.description)
        );
    }
    out.push_str("</div>\n<h2>The run over Comity</h2>\n");
    numbers(&mut out, recording, metrics);
    kinds(&mut out, metrics);
    gaps(&mut out, metrics);
    flows(&mut out, metrics);
    vary(&mut out, command);
    run(&mut out, recording);
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn headline(transports: &[Transport]) -> String {
    let shown: Vec<String> = transports
        .iter()
        .map(|transport| match &transport.viewing {
            Ok(viewing) => format!("{} {}", transport.name, percent(viewing.shown_share())),
            Err(_) => format!("{} did not run", transport.name),
        })
        .collect();
    format!("Pictures shown in time: {}", shown.join("; "))
}

/// What the viewers saw, with a column for each transport.
fn viewings(out: &mut String, recording: &Recording, transports: &[Transport]) {
    let ran: Vec<(&str, &Viewing)> = transports
        .iter()
        .filter_map(|transport| Some((transport.name.as_str(), transport.viewing.as_ref().ok()?)))
        .collect();
    let row = |name: &str, of: &dyn Fn(&Viewing) -> String| {
        // Keeps a value on the line of its unit.
        let cells = ran
            .iter()
            .map(|(_, viewing)| of(viewing).replace(' ', "\u{a0}"));
        std::iter::once(name.to_owned()).chain(cells).collect()
    };
    let delay = |of: fn(Delay) -> f64| {
        move |viewing: &Viewing| {
            let delay = viewing.delay_ms.map(of);
            delay.map_or("none".into(), milliseconds)
        }
    };
    let seconds = |length: f64| format!("{length:.2} s");
    let (freezes, frozen) = match recording.setup.copies {
        1 => ("freezes".to_owned(), "frozen in all"),
        copies => (format!("freezes of {copies} copies"), "frozen, a copy"),
    };
    let rows: [Vec<String>; 9] = [
        row("pictures", &|viewing| thousands(viewing.pictures)),
        row("shown in time", &|viewing| percent(viewing.shown_share())),
        row("delay, median", &delay(|delay| delay.p50)),
        row("delay, 95 %", &delay(|delay| delay.p95)),
        row("delay, 99 %", &delay(|delay| delay.p99)),
        row("delay, longest", &delay(|delay| delay.max)),
        row(&freezes, &|viewing| thousands(viewing.freezes)),
        row(frozen, &|viewing| seconds(viewing.frozen_s)),
        row("longest freeze", &|viewing| seconds(viewing.longest_s)),
    ];
    let heads: Vec<&str> = std::iter::once("")
        .chain(ran.iter().map(|(name, _)| *name))
        .collect();
    out.push_str("<h2>What a viewer saw</h2>\n");
    table(out, "The same video over each transport", &heads, &rows);
    let _ = writeln!(
        out,
        "<p class=\"soft\">A player shows each picture {} after its time. A freeze is a run of pictures of \
         one copy that are not shown then: each, or one that it depends on, was incomplete. The delay is the \
         time from the sending of a picture until it was complete; a picture that was never complete counts as \
         the longest.</p>",
        spaced(recording.setup.latency)
    );
    for transport in transports {
        let about = match &transport.viewing {
            Ok(_) => transport.how.clone(),
            Err(reason) => format!("It did not run: {reason}."),
        };
        let _ = writeln!(
            out,
            "<p class=\"soft\"><b>{}.</b> {}</p>",
            Escaped(&transport.name),
            Escaped(&about)
        );
    }
}

/// The pictures that were due, and those on the screen, at the worst moment of each transport.
fn moments(out: &mut String, recording: &Recording, transports: &[Transport]) {
    out.push_str("<h2>The worst moment of each</h2>\n<div class=\"moments\">\n");
    for transport in transports {
        let Ok(viewing) = &transport.viewing else {
            continue;
        };
        let Some(worst) = viewing.worst else {
            continue;
        };
        let text = if viewing.freezes > 0 {
            format!(
                "After {:.2} s, at the end of the longest freeze: the screen was {:.2} s behind.",
                worst.at_s, worst.behind_s
            )
        } else {
            format!(
                "After {:.2} s: no picture froze; this one had the least time left, {:.0} ms.",
                worst.at_s, worst.left_ms
            )
        };
        let _ = write!(out, "<section>\n<h3>{}</h3>\n", Escaped(&transport.name));
        // For a file of the user, the program contains no pictures.
        if recording.setup.clip.is_none() {
            out.push_str("<div class=\"pair\">\n");
            picture(out, Some(worst.due), "due");
            let seen = match worst.seen {
                Some(_) => "on the screen",
                None => "no picture yet",
            };
            picture(out, worst.seen, seen);
            out.push_str("</div>\n");
        }
        let _ = write!(out, "<p>{}</p>\n</section>\n", Escaped(&text));
    }
    out.push_str("</div>\n");
}

fn picture(out: &mut String, number: Option<usize>, caption: &str) {
    let (width, height) = thumbnails::SIZE;
    let image = match number.and_then(thumbnails::address) {
        Some(address) => format!(
            "<img src=\"{address}\" width=\"{width}\" height=\"{height}\" alt=\"The picture {caption}\">"
        ),
        None => "<div class=\"none\"></div>".into(),
    };
    let _ = writeln!(
        out,
        "<figure>{image}<figcaption>{caption}</figcaption></figure>"
    );
}

fn vary(out: &mut String, command: &str) {
    let _ = writeln!(
        out,
        "<h2>Vary it</h2>\n<p>This page was made by:</p>\n<pre><code>{}</code></pre>\n\
         <p>More competitors, less time, a window controller, random losses:</p>\n<pre><code>\
         comity demo --flows 4 --latency 200ms --cc cubic\n\
         comity demo --rivals cubic --loss 1%\n\
         comity demo --help</code></pre>",
        Escaped(command)
    );
}

fn warning(out: &mut String, recording: &Recording) {
    if recording.exactness.overload.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "<p class=\"warn\" role=\"alert\"><b>Do not trust these numbers.</b> The machine was too busy to \
         emulate the bottleneck exactly: {}. Stop other programs and run the demo again.</p>",
        Escaped(&recording.exactness.overload.join("; "))
    );
}

fn numbers(out: &mut String, recording: &Recording, metrics: &Metrics) {
    let (pictures, on_time, decodable) = metrics.total(Kind::is_picture);
    let video = metrics.flows.first();
    let share = super::super::metrics::share;
    let numbers = [
        (percent(share(on_time, pictures)), "of pictures on time"),
        (
            percent(share(decodable, pictures)),
            "of pictures decodable in time",
        ),
        (
            percent(metrics.decodable_of_share()),
            "of an equal share decodable in time",
        ),
        (
            thousands(recording.sender.late_bytes),
            "bytes sent after their deadline",
        ),
        (
            video.map_or("none".into(), |flow| percent(flow.share)),
            "of the traffic is the video",
        ),
        (
            metrics
                .jain_of_fair
                .map_or("undefined".into(), |index| format!("{index:.3}")),
            "Jain\u{2019}s index relative to fair rates",
        ),
    ];
    out.push_str("<div class=\"numbers\">\n");
    for (number, meaning) in numbers {
        let _ = writeln!(
            out,
            "<div><b>{}</b>{}</div>",
            Escaped(&number),
            Escaped(meaning)
        );
    }
    out.push_str("</div>\n");
}

/// A table whose first column is a name.
fn table(out: &mut String, caption: &str, heads: &[&str], rows: &[Vec<String>]) {
    let _ = write!(
        out,
        "<table>\n<caption>{}</caption>\n<tr>",
        Escaped(caption)
    );
    for head in heads {
        let _ = write!(out, "<th scope=\"col\">{}</th>", Escaped(head));
    }
    out.push_str("</tr>\n");
    for row in rows {
        out.push_str("<tr>");
        for cell in row {
            let _ = write!(out, "<td>{}</td>", Escaped(cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
}

fn kinds(out: &mut String, metrics: &Metrics) {
    let rows: Vec<Vec<String>> = metrics
        .kinds
        .iter()
        .map(|count| {
            vec![
                count.kind.name().into(),
                thousands(count.sent),
                thousands(count.on_time),
                thousands(count.late),
                thousands(count.gaps),
                thousands(count.decodable),
            ]
        })
        .collect();
    let heads = ["type", "sent", "on time", "late", "missing", "decodable"];
    table(out, "Sections of the video by type", &heads, &rows);
}

fn gaps(out: &mut String, metrics: &Metrics) {
    if metrics.gaps.is_empty() && metrics.unreported == 0 {
        return;
    }
    let kinds = metrics.kinds.iter().map(|count| count.kind);
    let mut rows: Vec<Vec<String>> = metrics
        .gaps
        .iter()
        .map(|(reason, count)| {
            let of_kinds = kinds.clone().map(|kind| {
                let count = metrics.gaps_of.get(&(*reason, kind));
                thousands(count.copied().unwrap_or(0))
            });
            let mut row = vec![(*reason).to_owned(), thousands(*count)];
            row.extend(of_kinds);
            row
        })
        .collect();
    if metrics.unreported > 0 {
        rows.push(vec!["not reported".into(), thousands(metrics.unreported)]);
    }
    let heads: Vec<&str> = ["reason", "sections"]
        .into_iter()
        .chain(kinds.map(Kind::name))
        .collect();
    table(out, "Why sections were never complete", &heads, &rows);
}

fn flows(out: &mut String, metrics: &Metrics) {
    let rows: Vec<Vec<String>> = metrics
        .flows
        .iter()
        .map(|flow| {
            vec![
                flow.name.clone(),
                decimals(flow.mbps),
                percent(flow.share),
                decimals(flow.fair_mbps),
            ]
        })
        .collect();
    let caption = format!(
        "Flows, from {:.1} s to {:.1} s",
        metrics.counted.0, metrics.counted.1
    );
    let heads = ["flow", "Mb/s", "share", "fair rate Mb/s"];
    table(out, &caption, &heads, &rows);
}

fn run(out: &mut String, recording: &Recording) {
    let setup = &recording.setup;
    let rows = [
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("bottleneck", spaced(setup.rate)),
        ("delay each way", spaced(setup.delay)),
        ("queue", format!("{} packets, drop-tail", setup.queue)),
        ("random loss each way", percent(setup.loss)),
        (
            "competitors",
            format!("{} greedy flows, {}", setup.flows, setup.rivals),
        ),
        (
            "video",
            format!(
                "{}, about {} on the wire",
                setup.video(),
                rate(setup.demand.as_bps() as f64)
            ),
        ),
        ("controller", setup.controller.clone()),
        (
            "shed to fit the target",
            if setup.sheds {
                "B, then P pictures"
            } else {
                "nothing"
            }
            .into(),
        ),
        ("latency", spaced(setup.latency)),
        ("length", format!("{:.1} s", recording.length_s)),
        ("seed of the losses", setup.seed.to_string()),
        ("cipher", recording.cipher.clone()),
    ];
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|(name, value)| vec![name.into(), value])
        .collect();
    out.push_str("<h2>The run</h2>\n");
    table(out, "Settings", &["", "value"], &rows);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::metrics::tests::recording;

    fn built() -> String {
        let recording = recording();
        page(&recording, &Metrics::of(&recording), "comity demo")
    }

    #[test]
    fn the_page_has_these_parts() {
        let page = built();
        for part in [
            "<h1>Pictures shown in time: Comity 50.0 %; SRT did not run; TCP, simulated 50.0 %</h1>",
            "<tr><td>delay, 95 %</td><td>never</td><td>405\u{a0}ms</td></tr>",
            "<p class=\"soft\"><b>SRT.</b> It did not run: it does &lt;not&gt; connect.</p>",
            "<p class=\"soft\"><b>TCP, simulated.</b> As &lt;sent&gt;.</p>",
            "<figcaption>on the screen</figcaption>",
            "<pre><code>comity demo</code></pre>",
            "<div><b>0</b>bytes sent after their deadline</div>",
            "<div><b>25.0 %</b>of the traffic is the video</div>",
            "<tr><td>P</td><td>2</td><td>0</td><td>1</td><td>1</td><td>0</td></tr>",
            "<div><b>45.0 %</b>of an equal share decodable in time</div>",
            "<tr><td>expired &lt;at&gt; the sender</td><td>1</td><td>0</td><td>1</td><td>0</td><td>0</td></tr>",
            "<tr><td>Reno 1</td><td>4</td><td>50.0 %</td><td>3.38</td></tr>",
            "<tr><td>queue</td><td>60 packets, drop-tail</td></tr>",
        ] {
            assert!(page.contains(part), "{part}\nis not in\n{page}");
        }
        assert!(!page.contains("class=\"warn\""));
    }

    #[test]
    fn the_page_loads_no_file_and_runs_no_script() {
        let page = built().replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        for outside in [
            "http", "src=\"h", "url(", "@import", "<script", "<link", "<at>",
        ] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn every_element_is_closed_and_every_id_is_unique() {
        let page = built();
        for element in [
            "svg", "figure", "table", "div", "text", "tr", "td", "p", "section", "main", "html",
        ] {
            let begins = page.matches(&format!("<{element}>")).count()
                + page.matches(&format!("<{element} ")).count();
            let ends = page.matches(&format!("</{element}>")).count();
            assert_eq!(begins, ends, "{element}");
            assert!(begins > 0, "{element}");
        }
        let mut ids: Vec<&str> = page
            .split(" id=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all);
        assert_eq!(page.matches("role=\"img\"").count(), 3);
        assert_eq!(page.matches("<img ").count(), 4);
    }

    #[test]
    fn names_cannot_inject_markup() {
        let mut recording = recording();
        recording.setup.controller = "</td><script>".into();
        let page = page(
            &recording,
            &Metrics::of(&recording),
            "comity demo --cc '<script>'",
        );
        assert!(!page.contains("<script>"));
        assert!(page.contains("&lt;/td&gt;&lt;script&gt;"));
    }

    #[test]
    fn an_overload_is_reported_first() {
        let mut recording = recording();
        recording.exactness.overload = vec!["9 of 10 packets were forwarded too late".into()];
        let page = page(&recording, &Metrics::of(&recording), "comity demo");
        let warning = page.find("Do not trust");
        assert!(warning.is_some() && warning < page.find("<figure"));
    }
}
