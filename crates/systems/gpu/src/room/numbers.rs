//! Ratios of times, and hits of the expander's internal DRAM. Means are arithmetic, of ratios of one kernel each.

use super::runs::{Design, GpuNumber, GpuRecord, GpuRun};
use super::section::Media;
use crate::{Class, Kernel, Pattern};
use Design::{
    Cxl, Ds, Dynamic, Gds, GdsAlone, GpuDram, Largest, Naive, NaiveSectors, Sr, SrLiteral, SrSectors, Uvm, UvmAlone,
};
use flashyard_describe::reproduce::{Number, claim};
use flashyard_units::Named;

/// Round trips of others' controllers in ns, and ours. \[P\] sheet micro-cxl-gpu §4; ours is the scenario's
const ROUND_TRIPS_NS: (f64, f64) = (250.0, 60.0);
/// The medium of the source's main figures. \[P\]
const USUAL: Option<Media> = Some(Media::ZNand);
/// Kernels over arrays, and over graphs. \[P\] sheet §6
const ARRAYS: [Kernel; 4] = [Kernel::Vadd, Kernel::Saxpy, Kernel::Gemm, Kernel::Conv3];
const GRAPHS: [Kernel; 2] = [Kernel::Path, Kernel::Bfs];

const fn run(kernel: Kernel, design: Design, media: Option<Media>) -> GpuRun {
    GpuRun { kernel, design, media }
}

fn of_class(class: Class) -> Vec<Kernel> {
    Kernel::ALL.iter().copied().filter(|kernel| kernel.class() == class).collect()
}

fn of_pattern(pattern: Pattern) -> Vec<Kernel> {
    Kernel::ALL.iter().copied().filter(|kernel| kernel.pattern() == Some(pattern)).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

/// The runs of kernels on two memories, one memory after the other.
fn pairs(kernels: &[Kernel], slow: (Design, Option<Media>), fast: (Design, Option<Media>)) -> Vec<GpuRun> {
    let on = |(design, media)| kernels.iter().map(move |&kernel| run(kernel, design, media));
    on(slow).chain(on(fast)).collect()
}

/// Times of the first half by those of the second, kernel by kernel.
fn ratios<'a>(runs: &'a [&'a GpuRecord]) -> impl Iterator<Item = f64> + 'a {
    let (slow, fast) = runs.split_at(runs.len() / 2);
    slow.iter().zip(fast).map(|(slow, fast)| slow.milliseconds / fast.milliseconds)
}

/// How much faster kernels are on the second memory, as a factor.
fn times(id: &str, kernels: &[Kernel], slow: (Design, Option<Media>), fast: (Design, Option<Media>)) -> GpuNumber {
    Number::of(id, pairs(kernels, slow, fast), |runs| mean(ratios(runs)))
}

/// Percent more.
fn percent(id: &str, kernels: &[Kernel], slow: (Design, Option<Media>), fast: (Design, Option<Media>)) -> GpuNumber {
    Number::of(id, pairs(kernels, slow, fast), |runs| 100.0 * (mean(ratios(runs)) - 1.0))
}

/// The largest factor of one kernel over media.
fn most(id: &str, kernel: Kernel, slow: Design, fast: Design) -> GpuNumber {
    let on = |design| Media::ALL.map(|media| run(kernel, design, Some(media)));
    Number::of(id, [on(slow), on(fast)].concat(), |runs| ratios(runs).fold(0.0, f64::max))
}

/// A share of the loads of an expander, mean over kernels of a pattern.
fn share(id: &str, pattern: Pattern, design: Design, of: fn(&GpuRecord) -> f64) -> GpuNumber {
    let runs: Vec<GpuRun> = of_pattern(pattern).into_iter().map(|kernel| run(kernel, design, USUAL)).collect();
    Number::of(id, runs, move |runs: &[&GpuRecord]| mean(runs.iter().map(|run| of(run))))
}

/// Hits of the internal DRAM.
fn hits(id: &str, pattern: Pattern, design: Design) -> GpuNumber {
    share(id, pattern, design, |run| run.internal_percent)
}

/// Hits of the internal DRAM, and loads of lines that were on their way.
fn hits_and_coming(id: &str, pattern: Pattern, design: Design) -> GpuNumber {
    share(id, pattern, design, |run| run.internal_percent + run.coming_percent)
}

/// Whether a figure of the first run is less than that of the second.
fn less(id: &str, first: GpuRun, second: GpuRun, figure: fn(&GpuRecord) -> f64) -> GpuNumber {
    Number::of(id, [first, second], move |runs: &[&GpuRecord]| claim(figure(runs[0]) < figure(runs[1])))
}

/// Whether classes follow each other in this order by a gain.
fn ordered(id: &str, classes: [Class; 3], slow: (Design, Option<Media>), fast: (Design, Option<Media>)) -> GpuNumber {
    let kernels = classes.map(of_class);
    let lengths = [0, 1, 2].map(|place: usize| 2 * kernels[place].len());
    let runs: Vec<GpuRun> = kernels.iter().flat_map(|kernels| pairs(kernels, slow, fast)).collect();
    Number::of(id, runs, move |runs| {
        let (first, rest) = runs.split_at(lengths[0]);
        let (second, third) = rest.split_at(lengths[1]);
        let [first, second, third] = [first, second, third].map(|runs| mean(ratios(runs)));
        claim(first > second && second > third)
    })
}

pub(super) fn numbers() -> Vec<GpuNumber> {
    let all = Kernel::ALL;
    let dram = |design| (design, None);
    let flash = |design| (design, USUAL);
    let of = |class| of_class(class);
    let seq = of_pattern(Pattern::Sequential);
    let around = of_pattern(Pattern::Around);
    let random = of_pattern(Pattern::Random);
    let (others, ours) = ROUND_TRIPS_NS;
    let bfs = |design| run(Kernel::Bfs, design, USUAL);
    vec![
        times("uvm-slower", all, dram(Uvm), dram(GpuDram)),
        times("cxl-over-uvm", all, dram(Uvm), dram(Cxl)),
        times("cxl-over-gds", all, flash(Gds), flash(Ds)),
        times("uvm-slower-alone", all, dram(UvmAlone), dram(GpuDram)),
        times("cxl-over-uvm-alone", all, dram(UvmAlone), dram(Cxl)),
        times("cxl-over-gds-alone", all, flash(GdsAlone), flash(Ds)),
        Number::closed("controller", others / ours),
        percent("slow-down-compute", &of(Class::Compute), dram(Cxl), dram(GpuDram)),
        percent("slow-down-load", &of(Class::Load), dram(Cxl), dram(GpuDram)),
        percent("slow-down-store", &of(Class::Store), dram(Cxl), dram(GpuDram)),
        ordered("slow-down-order", [Class::Load, Class::Store, Class::Compute], dram(Cxl), dram(GpuDram)),
        times("sr-gain", all, flash(Cxl), flash(Sr)),
        times("sr-gain-literal", all, flash(Cxl), flash(SrLiteral)),
        times("sr-gain-sectors", all, flash(Cxl), flash(SrSectors)),
        times("sr-arrays", &ARRAYS, flash(Cxl), flash(Sr)),
        percent("sr-graphs", &GRAPHS, flash(Cxl), flash(Sr)),
        percent("ds-compute", &of(Class::Compute), flash(Sr), flash(Ds)),
        percent("ds-load", &of(Class::Load), flash(Sr), flash(Ds)),
        percent("ds-store", &of(Class::Store), flash(Sr), flash(Ds)),
        ordered("ds-order", [Class::Store, Class::Compute, Class::Load], flash(Sr), flash(Ds)),
        most("vadd-media", Kernel::Vadd, Cxl, Sr),
        most("bfs-media", Kernel::Bfs, Sr, Ds),
        times("naive-gain", all, flash(Cxl), flash(Naive)),
        times("naive-slower", all, flash(Naive), dram(GpuDram)),
        times("dyn-sequential", &seq, flash(Naive), flash(Dynamic)),
        percent("dyn-around", &around, flash(Naive), flash(Dynamic)),
        percent("dyn-random", &random, flash(Naive), flash(Dynamic)),
        times("window-around", &around, flash(Dynamic), flash(Sr)),
        hits("hits-cxl-sequential", Pattern::Sequential, Cxl),
        hits("hits-cxl-around", Pattern::Around, Cxl),
        hits("hits-cxl-random", Pattern::Random, Cxl),
        hits("hits-naive-sequential", Pattern::Sequential, Naive),
        hits("hits-naive-around", Pattern::Around, Naive),
        hits("hits-naive-random", Pattern::Random, Naive),
        hits("hits-largest-random", Pattern::Random, Largest),
        hits("hits-dyn-sequential", Pattern::Sequential, Dynamic),
        hits("hits-dyn-around", Pattern::Around, Dynamic),
        hits("hits-dyn-random", Pattern::Random, Dynamic),
        hits("hits-sr-around", Pattern::Around, Sr),
        hits_and_coming("hits-cxl-sequential-coming", Pattern::Sequential, Cxl),
        hits_and_coming("hits-cxl-around-coming", Pattern::Around, Cxl),
        hits_and_coming("hits-cxl-random-coming", Pattern::Random, Cxl),
        hits_and_coming("hits-naive-sequential-coming", Pattern::Sequential, Naive),
        hits_and_coming("hits-naive-around-coming", Pattern::Around, Naive),
        hits_and_coming("hits-naive-random-coming", Pattern::Random, Naive),
        hits("hits-naive-sequential-sectors", Pattern::Sequential, NaiveSectors),
        hits("hits-naive-around-sectors", Pattern::Around, NaiveSectors),
        hits("hits-naive-random-sectors", Pattern::Random, NaiveSectors),
        hits("hits-sr-around-sectors", Pattern::Around, SrSectors),
        times("naive-gain-sectors", all, flash(Cxl), flash(NaiveSectors)),
        less("ds-no-saturation", bfs(Ds), bfs(Sr), |run| run.full_percent),
        less("ds-loads", bfs(Ds), bfs(Sr), |run| run.longest_us),
    ]
}

/// Runs that charts show beside those of numbers.
pub(super) fn drawn() -> Vec<GpuRun> {
    let media = |kernel| {
        Media::ALL.into_iter().flat_map(move |media| [Cxl, Sr, Ds].map(|design| run(kernel, design, Some(media))))
    };
    media(Kernel::Vadd).chain(media(Kernel::Bfs)).collect()
}
