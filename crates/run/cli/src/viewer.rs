//! The live view of a recording: a thread reads it as it grows, and this one draws and takes keys.
//!
//! Live, attached to or finished: each is a recording that is followed, so that all show the same. The viewer is in no way
//! a part of the job: any number of them may look at one run.

use crate::live::panic_text;
use crate::paced::Paced;
use crate::terminal::{Came, Terminal};
use crate::{machine, printer};
use anyhow::Context;
use rustix::fd::OwnedFd;
use std::path::Path;
use std::sync::mpsc::{channel, sync_channel, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::Arc;
use std::time::{Duration, Instant};
use ullage_diagnosis::Timeline;
use ullage_job_state::{Derivation, Happened, JobState};
use ullage_model::{Item, Outcome, OutcomeKind, RunFacts, Verdict};
use ullage_recording::Follower;
use ullage_report::text;
use ullage_tui::{Asked, Heading, Known, Rect, Standing, View};

/// How often a live recording is asked for news: twice between two samples of a second.
const ASKED_EVERY: Duration = Duration::from_millis(500);
/// A frame shows what was read while a long recording is read, so often.
const SHOWN_EVERY: Duration = Duration::from_millis(150);
/// Judging limits and asking every rule are expensive: one part of so many of the time, while an old recording is read
/// and while a run goes on.
const LIMITS_READING: u32 = 30;
const LIMITS_LIVE: u32 = 1000;
const VERDICT_ONE_OF: u32 = 1000;

/// What the reader tells.
enum News {
    State(Arc<JobState>),
    Happened(Happened),
    Judged(Box<Verdict>),
    Standing(Standing),
}

/// How the view was left.
pub enum Left {
    /// The person left; the verdict of all that was read, where there was one.
    Quit(Option<Box<Verdict>>),
    /// This signal asked for the end.
    Signal(i32),
    /// The terminal is gone.
    HungUp,
}

/// Why nothing more is drawn.
enum Shown {
    Left(Left),
    /// It was to be looked at for so long, or the reader has failed.
    NothingMoreToRead(Option<Box<Verdict>>),
}

/// A terminal that shows a recording.
pub struct Viewer {
    follower: Follower,
    view: View,
    terminal: Terminal,
    wake: OwnedFd,
}

impl Viewer {
    /// Takes the terminal, and shows the first frame. From then on signals are read by the view.
    ///
    /// # Errors
    /// Where there is no recording in `directory`, or the terminal cannot be taken.
    pub fn open(directory: &Path) -> anyhow::Result<Viewer> {
        let follower = Follower::open(directory)?;
        let mut view = View::new(heading(&follower.run), printer::stdout_style().color);
        // A day of samples takes a while to read.
        view.known = known(&follower.run, directory);
        let (wake, woken) = wake_up()?;
        let mut terminal = Terminal::take(woken).context("the terminal cannot be drawn on")?;
        draw(&mut terminal, &mut view)?;
        Ok(Viewer { follower, view, terminal, wake })
    }

    /// Shows it until somebody leaves, or `until`.
    ///
    /// # Errors
    /// Where no thread can be had to read with.
    pub fn show(self, until: Option<Instant>) -> anyhow::Result<Left> {
        let Viewer { follower, mut view, mut terminal, wake } = self;
        let (sender, news) = channel();
        // Dropped with the view, which the reader notices.
        let (_stop, stopped) = sync_channel::<()>(1);
        // Not waited for where somebody leaves: a disk that hangs keeps nobody in the view.
        let reader = std::thread::Builder::new()
            .name("reader".into())
            .spawn(move || Reader::new(follower, sender, wake).read(&stopped, until))
            .context("no thread to read with")?;
        let shown = run(&mut terminal, &mut view, &news)?;
        // Given back before anything is said.
        drop(terminal);
        match shown {
            Shown::Left(left) => Ok(left),
            Shown::NothingMoreToRead(verdict) => {
                reader.join().map_err(|panic| {
                    anyhow::anyhow!("the recording could not be read: {}", panic_text(panic.as_ref()))
                })?;
                Ok(Left::Quit(verdict))
            }
        }
    }
}

fn heading(run: &RunFacts) -> Heading {
    let mut place: Vec<String> = run.job.iter().map(|job| format!("job {job}")).collect();
    place.extend(run.node.clone());
    place.extend(run.rank.map(|rank| format!("rank {rank}")));
    Heading { command: run.command.clone(), place }
}

/// What a finished run's files say of it before its samples are read.
fn known(run: &RunFacts, directory: &Path) -> Option<Known> {
    let outcome = run.outcome.as_ref()?;
    let verdict = crate::verdict_file::read(directory)?;
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let findings = verdict["findings"].as_array().into_iter().flatten();
    Some(Known {
        outcome: text::outcome(outcome, run.duration_s),
        peak_bytes: verdict["memory"]["peak_bytes"].as_u64(),
        findings: findings.filter_map(|finding| text(&finding["title"])).collect(),
    })
}

/// A pipe: what is written into the first is read from the second.
fn wake_up() -> anyhow::Result<(OwnedFd, OwnedFd)> {
    use rustix::pipe::{pipe_with, PipeFlags};
    let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    Ok((write, read))
}

fn draw(terminal: &mut Terminal, view: &mut View) -> std::io::Result<()> {
    let (width, height) = terminal.size();
    view.resized(width, height);
    terminal.draw(view.draw(Rect::new(0, 0, width, height)))
}

fn run(terminal: &mut Terminal, view: &mut View, news: &Receiver<News>) -> anyhow::Result<Shown> {
    let mut verdict = None;
    loop {
        for came in terminal.wait() {
            match came {
                Came::Keys(keys) => {
                    for key in keys {
                        if view.key(key) == Asked::Quit {
                            return Ok(Shown::Left(Left::Quit(verdict)));
                        }
                    }
                }
                Came::News | Came::Resized => {}
                Came::HungUp => return Ok(Shown::Left(Left::HungUp)),
                Came::Signal(number) => return Ok(Shown::Left(Left::Signal(number))),
            }
        }
        loop {
            match news.try_recv() {
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Ok(Shown::NothingMoreToRead(verdict)),
                Ok(News::State(state)) => view.state(state),
                Ok(News::Happened(happened)) => view.happened(happened),
                Ok(News::Standing(standing)) => view.standing = standing,
                Ok(News::Judged(judged)) => {
                    verdict = Some(judged.clone());
                    view.judged(judged);
                }
            }
        }
        if draw(terminal, view).is_err() {
            return Ok(Shown::Left(Left::HungUp));
        }
    }
}

/// Follows the recording, and tells what is new.
struct Reader {
    follower: Follower,
    timeline: Timeline,
    derivation: Derivation,
    sender: Sender<News>,
    wake: OwnedFd,
    limits: Paced,
    verdict: Paced,
    /// Something was told since the last frame.
    is_new: bool,
}

impl Reader {
    fn new(follower: Follower, sender: Sender<News>, wake: OwnedFd) -> Reader {
        let derivation = Derivation::new(&follower.run);
        Reader {
            follower,
            timeline: Timeline::default(),
            derivation,
            sender,
            wake,
            limits: Paced::one_of(LIMITS_READING),
            verdict: Paced::one_of(VERDICT_ONE_OF),
            is_new: false,
        }
    }

    /// Reads until the view is left.
    fn read(mut self, stopped: &Receiver<()>, until: Option<Instant>) {
        let mut standing = Standing::Reading;
        loop {
            if let Err(why) = self.news(stopped) {
                self.send(News::Standing(Standing::Lost(why)));
                self.show();
                let _ = stopped.recv();
                return;
            }
            if is_left(stopped) {
                return;
            }
            let mut now = self.standing();
            let is_over = matches!(now, Standing::Ended(_));
            if is_over && self.news(stopped).is_ok() {
                // It may have ended since its facts were read: they say how, and the last samples are there.
                now = self.standing();
            }
            self.limits.at_most_one_of(LIMITS_LIVE);
            self.judge(is_over);
            if now != standing {
                standing = now;
                self.send(News::Standing(standing.clone()));
            }
            if is_over {
                self.show();
                // It stays until somebody leaves, or it was shown for so long.
                let _ = match until {
                    Some(until) => stopped.recv_timeout(until.saturating_duration_since(Instant::now())),
                    None => stopped.recv().map_err(|_| RecvTimeoutError::Disconnected),
                };
                return;
            }
            self.show();
            if until.is_some_and(|until| Instant::now() >= until) {
                self.judge(true);
                return;
            }
            if stopped.recv_timeout(ASKED_EVERY) == Err(RecvTimeoutError::Disconnected) {
                return;
            }
        }
    }

    /// What is new. A long recording is read in one go, because each call reads the part that it ended in anew; frames
    /// show meanwhile how far that is.
    fn news(&mut self, stopped: &Receiver<()>) -> Result<(), String> {
        let mut shown = Instant::now();
        let Reader { follower, timeline, derivation, sender, limits, is_new, wake, .. } = self;
        let run = follower.run.clone();
        let read = follower.news(|item| {
            *is_new = true;
            match item {
                Item::Event(event) => {
                    timeline.push_event(event.clone());
                    if let Some(happened) = derivation.event(&event, timeline) {
                        let _ = sender.send(News::Happened(happened));
                    }
                }
                Item::Sample(sample) => {
                    timeline.push_sample(&sample);
                    if let Some(states) = limits.run(|| ullage_diagnosis::limits(&run, timeline)) {
                        derivation.limits(states);
                    }
                    // A look at the end of a run, after its last process.
                    if !sample.processes.is_empty() {
                        let _ = sender.send(News::State(Arc::new(derivation.sample(&sample, timeline))));
                    }
                }
            }
            if shown.elapsed() >= SHOWN_EVERY {
                shown = Instant::now();
                wake_by(wake);
            }
            !is_left(stopped)
        });
        read.map_err(|error| error.to_string())
    }

    fn standing(&self) -> Standing {
        let run = &self.follower.run;
        if let Some(outcome) = &run.outcome {
            return Standing::Ended(text::outcome(outcome, run.duration_s));
        }
        match run.recorder {
            Some(recorder) if machine::is_alive(recorder) => Standing::Live,
            _ => Standing::Ended("the recording stops before the end of the job".into()),
        }
    }

    /// The verdict of what was read; in any case where it is the last.
    fn judge(&mut self, last: bool) {
        let mut run = self.follower.run.clone();
        if run.outcome.is_none() {
            let runs = run.recorder.is_some_and(machine::is_alive);
            if !runs {
                machine::post_mortem(&run, &mut self.timeline);
            }
            run.outcome = Some(match runs {
                true => Outcome::of(OutcomeKind::StillRunning),
                false => machine::outcome_without_end(&run),
            });
            run.duration_s = Some(self.timeline.end().seconds());
        }
        if last {
            self.verdict = Paced::one_of(VERDICT_ONE_OF);
        }
        let timeline = &self.timeline;
        if let Some(verdict) = self.verdict.run(|| ullage_diagnosis::diagnose(&run, timeline)) {
            self.derivation.growth(verdict.growth.clone());
            self.send(News::Judged(Box::new(verdict)));
        }
    }

    fn send(&mut self, news: News) {
        self.is_new = true;
        let _ = self.sender.send(news);
    }

    /// Wakes the one that draws, where there is something to draw.
    fn show(&mut self) {
        if std::mem::take(&mut self.is_new) {
            wake_by(&self.wake);
        }
    }
}

/// A pipe that is full has woken whoever reads it.
fn wake_by(pipe: &OwnedFd) {
    let _ = rustix::io::write(pipe, &[1]);
}

impl Drop for Reader {
    fn drop(&mut self) {
        wake_by(&self.wake);
    }
}

fn is_left(stopped: &Receiver<()>) -> bool {
    stopped.try_recv() == Err(TryRecvError::Disconnected)
}
