//! From a run of a JBOF to the figures of reports.

use super::detail::detail;
use super::fio_result::fio_report;
use super::run::JbofRun;
use flashyard_describe::Measured;

impl From<JbofRun> for Measured {
    fn from(run: JbofRun) -> Self {
        let (detail, fio) = (detail(&run), fio_report(&run));
        let JbofRun { figures, result, jobs, equipment } = run;
        let (first_end, window) = (figures.first_end, figures.window.as_secs_f64());
        Self {
            design: figures.design.name().to_owned(),
            result,
            detail,
            fio,
            equipment,
            jobs: jobs.map(|jobs| jobs.in_words()),
            scaling: figures.scaling,
            closed_loop: figures.closed_loop,
            first_end_seconds: first_end.map(|end| (end.since(figures.measured_from).as_secs_f64(), window)),
            simulated_seconds: figures.simulated.as_secs_f64(),
        }
    }
}
