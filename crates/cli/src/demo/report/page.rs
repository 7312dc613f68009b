//! The page around the charts.

use std::fmt::Write;

use super::super::clip::Kind;
use super::super::metrics::Metrics;
use super::super::plot::Escaped;
use super::super::recording::Recording;
use super::super::summary::{decimals, percent, situation, statements};
use super::figures;
use crate::numbers::thousands;

const PAGE_STYLE: &str = "\
:root{color-scheme:light dark;--page:#ffffff;--text:#1d2430;--soft:#5c6675;--line:#dfe3e8;--card:#f6f7f9;--warn:#c01030;--warn-page:#fdecef}
@media (prefers-color-scheme:dark){:root{--page:#14181f;--text:#e8ebf0;--soft:#a3adba;--line:#343b46;--card:#1c222b;--warn:#ff8095;--warn-page:#3a1820}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--text);font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}
main{max-width:908px;margin:0 auto;padding:24px}
h1{font-size:1.7rem;line-height:1.2;margin:0 0 8px}
h2{font-size:1.2rem;margin:40px 0 8px}
p{margin:8px 0;max-width:70ch}
.soft{color:var(--soft)}
.numbers{display:grid;grid-template-columns:repeat(auto-fit,minmax(130px,1fr));gap:12px;margin:20px 0}
.numbers div{background:var(--card);border-radius:8px;padding:12px 14px}
.numbers b{display:block;font-size:1.5rem;line-height:1.3}
.warn{background:var(--warn-page);color:var(--warn);border-radius:8px;padding:12px 14px}
figure{margin:28px 0}
figcaption{color:var(--soft);font-size:.92rem;margin-top:2px}
svg{width:100%;min-width:640px;height:auto;display:block}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:8px 0}
th,td{text-align:right;padding:5px 12px 5px 0;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left;white-space:normal}
th{font-weight:600;color:var(--soft)}
dl{margin:8px 0}
dt{font-weight:600;margin-top:10px}
dd{margin:0;max-width:70ch}
@media (max-width:640px){main{padding:16px}h1{font-size:1.4rem}}
@media print{main{max-width:none}figure{break-inside:avoid}}
";

/// The whole page. It loads no other file and runs no script.
pub(crate) fn page(recording: &Recording, metrics: &Metrics) -> String {
    let mut out = String::new();
    let title = headline(metrics);
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
    numbers(&mut out, recording, metrics);
    for chart in figures::all(recording, metrics) {
        let _ = write!(
            out,
            "<figure id=\"{}\">\n<div class=\"scroll\">{}</div><figcaption>{}</figcaption>\n</figure>\n",
            chart.id,
            chart.svg(),
            Escaped(&chart.description)
        );
    }
    out.push_str("<h2>Results</h2>\n");
    kinds(&mut out, metrics);
    gaps(&mut out, metrics);
    flows(&mut out, metrics);
    out.push_str("<h2>In words</h2>\n<dl>\n");
    for statement in statements(recording, metrics) {
        let _ = writeln!(
            out,
            "<dt>{}</dt><dd>{}</dd>",
            Escaped(statement.about),
            Escaped(&statement.text)
        );
    }
    out.push_str("</dl>\n");
    run(&mut out, recording);
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn headline(metrics: &Metrics) -> String {
    let (sections, on_time, _) = metrics.total(|_| true);
    format!(
        "{} of the video was on time",
        percent(super::super::metrics::share(on_time, sections))
    )
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
        "<div class=\"scroll\"><table>\n<caption class=\"soft\" style=\"text-align:left\">{}</caption>\n<tr>",
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
    out.push_str("</table></div>\n");
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
                percent(count.on_time_share()),
                thousands(count.late),
                thousands(count.gaps),
                thousands(count.decodable),
                thousands(count.bytes.sent / 1_000),
                thousands(count.bytes.on_time / 1_000),
                thousands(count.bytes.decodable / 1_000),
            ]
        })
        .collect();
    let heads = [
        "type",
        "sent",
        "on time",
        "",
        "late",
        "never complete",
        "decodable",
        "kB sent",
        "on time",
        "decodable",
    ];
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
        ("bottleneck", setup.rate.to_string()),
        ("delay each way", setup.delay.to_string()),
        ("queue", format!("{} packets, drop-tail", setup.queue)),
        ("random loss each way", percent(setup.loss)),
        (
            "competitors",
            format!("{} greedy flows, {}", setup.flows, setup.rivals),
        ),
        (
            "video",
            format!("{}, about {} on the wire", setup.video(), setup.demand),
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
        ("latency", setup.latency.to_string()),
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
        page(&recording, &Metrics::of(&recording))
    }

    #[test]
    fn the_page_has_these_parts() {
        let page = built();
        for part in [
            "<h1>60.0 % of the video was on time</h1>",
            "<div><b>0</b>bytes sent after their deadline</div>",
            "<div><b>25.0 %</b>of the traffic is the video</div>",
            "<tr><td>P</td><td>2</td><td>0</td><td>0.0 %</td><td>1</td><td>1</td><td>0</td>\
             <td>40</td><td>0</td><td>0</td></tr>",
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
    fn the_page_needs_nothing_else_and_runs_nothing() {
        let page = built().replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        for outside in [
            "http", "src=", "url(", "@import", "<script", "<link", "<at>",
        ] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn every_element_that_begins_ends_and_every_id_is_there_once() {
        let page = built();
        for element in [
            "svg", "figure", "table", "div", "text", "tr", "td", "p", "dl", "main", "html",
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
        assert_eq!(page.matches("<figure").count(), 6);
        assert_eq!(page.matches("role=\"img\"").count(), 6);
    }

    #[test]
    fn names_cannot_leave_their_place() {
        let mut recording = recording();
        recording.setup.controller = "</td><script>".into();
        let page = page(&recording, &Metrics::of(&recording));
        assert!(!page.contains("<script>"));
        assert!(page.contains("&lt;/td&gt;&lt;script&gt;"));
    }

    #[test]
    fn an_overload_is_reported_first() {
        let mut recording = recording();
        recording.exactness.overload = vec!["9 of 10 packets were forwarded too late".into()];
        let page = page(&recording, &Metrics::of(&recording));
        let warning = page.find("Do not trust");
        assert!(warning.is_some() && warning < page.find("<figure"));
    }
}
