//! `comity claims`

mod counts;
mod json;
mod text;

use std::sync::Arc;

use comity_sim::claims::{Book, Claim, ClaimReport, Form, LoadError, Measured, RunError, Told};

use super::progress::{OnInterrupt, follow};
use super::sim::refuse;
use super::{Failure, complain, print, say};
use crate::args;
use crate::clock::now;
use counts::Counts;

pub(crate) fn claims(args: &args::Claims) -> Result<(), Failure> {
    let form = if args.full { Form::Full } else { Form::Quick };
    let book = Book::load(&args.dir, form).map_err(|error| match error {
        LoadError::Problems(files) => {
            for problems in &files {
                refuse(problems);
            }
            Failure::Usage
        }
        error => {
            complain(&match args.dir.exists() {
                true => error.to_string(),
                false => {
                    format!("{error}; --dir names the folder, which is experiments/ of the project")
                }
            });
            Failure::Usage
        }
    })?;
    let chosen = choose(&book, &args.names)?;
    if args.list {
        let claims: Vec<&Claim> = pick(&book, &chosen);
        return if args.json {
            print(format!("{:#}\n", json::list(&book, &claims)))
        } else {
            print(text::list(&book, &claims))
        };
    }
    let book = Arc::new(book);
    let began = now();
    let mut judged = Judged::new(&book, pick(&book, &chosen), form, !args.json);
    let end = run_claims(&book, &chosen, args, |(place, measured)| {
        judged.take(place, &measured)
    });
    let is_whole = match &end {
        Ok(()) => true,
        Err(Failure::Interrupted) => false,
        Err(_) => return end,
    };
    let reports = judged.finish()?;
    let wall_seconds = began.elapsed().as_secs_f64();
    let counts = Counts::of(&reports);
    if args.json {
        let document = json::document(&reports, form, &counts, (wall_seconds, !is_whole));
        print(format!("{document:#}\n"))?;
    } else {
        print(text::summary(form, &counts, wall_seconds))?;
    }
    if !is_whole {
        say(&format!(
            "interrupted: {} of {} claims were judged",
            reports.len(),
            chosen.len()
        ));
        return end;
    }
    if counts.fail > 0 {
        return Err(Failure::Failed);
    }
    Ok(())
}

/// What came out so far, printed in the order of the claims as soon as all before it is there.
struct Judged<'b> {
    book: &'b Book,
    claims: Vec<&'b Claim>,
    form: Form,
    prints: bool,
    reports: Vec<Option<ClaimReport<'b>>>,
    printed: usize,
}

impl<'b> Judged<'b> {
    fn new(book: &'b Book, claims: Vec<&'b Claim>, form: Form, prints: bool) -> Self {
        let reports = claims.iter().map(|_| None).collect();
        Self {
            book,
            claims,
            form,
            prints,
            reports,
            printed: 0,
        }
    }

    /// Judges the claim at this place; returns what can be printed now.
    fn take(&mut self, place: usize, measured: &Measured) -> String {
        if let (Some(claim), Some(slot)) = (self.claims.get(place), self.reports.get_mut(place)) {
            *slot = Some(self.book.judge(claim, measured, self.form));
        }
        let mut text = String::new();
        while let Some(Some(report)) = self.reports.get(self.printed) {
            if self.prints {
                text.push_str(&text::report(report));
            }
            self.printed += 1;
        }
        text
    }

    /// Prints what waited for others that never came.
    fn finish(mut self) -> Result<Vec<ClaimReport<'b>>, Failure> {
        let rest = self.reports.split_off(self.printed);
        let mut all: Vec<_> = self.reports.into_iter().flatten().collect();
        for report in rest.into_iter().flatten() {
            if self.prints {
                print(text::report(&report))?;
            }
            all.push(report);
        }
        Ok(all)
    }
}

fn pick<'b>(book: &'b Book, chosen: &[usize]) -> Vec<&'b Claim> {
    chosen
        .iter()
        .filter_map(|at| book.claims().get(*at))
        .collect()
}

/// The places of the claims that are requested.
fn choose(book: &Book, names: &[String]) -> Result<Vec<usize>, Failure> {
    let is_meant = |claim: &Claim, name: &String| claim.id == *name || claim.system == *name;
    for name in names {
        if book.claims().iter().any(|claim| is_meant(claim, name)) {
            continue;
        }
        let advice = match book.nearest(name) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let mut systems: Vec<&str> = book
                    .claims()
                    .iter()
                    .map(|claim| claim.system.as_str())
                    .collect();
                systems.dedup();
                format!(
                    "the systems are {}; --list shows all claims",
                    systems.join(", ")
                )
            }
        };
        complain(&format!(
            "there is no claim and no system called `{name}`: {advice}"
        ));
        return Err(Failure::Usage);
    }
    let claims = book.claims().iter().enumerate();
    Ok(claims
        .filter(|(_, claim)| names.is_empty() || names.iter().any(|name| is_meant(claim, name)))
        .map(|(at, _)| at)
        .collect())
}

/// Runs what the claims need, and prints what `take` makes of each one's numbers.
fn run_claims(
    book: &Arc<Book>,
    chosen: &[usize],
    args: &args::Claims,
    mut take: impl FnMut((usize, Measured)) -> String,
) -> Result<(), Failure> {
    let runs = book.run_count(&pick(book, chosen));
    let (book, chosen, jobs) = (book.clone(), chosen.to_vec(), args.jobs);
    let mut printing = Ok(());
    let end = follow(
        (runs, false),
        OnInterrupt::Leave(None),
        move |cancel, teller| {
            let claims = pick(&book, &chosen);
            let tell = |told: Told<'_>| match told {
                Told::Runs(done) => teller.finished(done),
                Told::Claim(place, measured) => {
                    if let Some(claim) = claims.get(place) {
                        teller.news((place, measured.of(claim)));
                    }
                }
            };
            book.run(&claims, jobs, Some(cancel), tell).map(drop)
        },
        |news, progress| {
            let text = take(news);
            if !text.is_empty() && printing.is_ok() {
                progress.pause(|| printing = print(text));
            }
        },
    )?;
    printing?;
    end.map_err(|error| match error {
        RunError::Interrupted => Failure::Interrupted,
        error => complain(&error),
    })
}
