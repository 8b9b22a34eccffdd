//! Drives that differ: what one drive is before a design takes from it, drive by drive.
//!
//! A design applies to each drive by itself: a shrunk drive keeps a share of its own cores and of its own map. Links,
//! host and harvesting are those of the enclosure.

use super::config::{Design, JbofConfig, JbofError};
use flashyard_fabric::Link;
use flashyard_ftl::SLOTS_PER_TRANSLATION_PAGE;
use flashyard_ssd::{DriveConfig, FirmwareCost, Overwrites};
use flashyard_units::{SimSpan, Watts};

/// One drive with full resources, what a shrunk one keeps of them, and what it draws.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DriveModel {
    /// The drive as Conv has it.
    pub drive: DriveConfig,
    /// Random overwrites of all filled slots before the run, without timing.
    pub overwrites: Overwrites,
    /// Share of the cores that a shrunk drive keeps.
    pub shrunk_cores: f64,
    /// Share of the map that a shrunk drive's DRAM holds.
    pub shrunk_memory: f64,
    /// Power of one controller core.
    pub core_power: Watts,
    /// DRAM energy a bit, in picojoules.
    pub dram_picojoules_per_bit: f64,
    /// Link energy a bit, in picojoules.
    pub link_picojoules_per_bit: f64,
}

impl DriveModel {
    /// Translation pages of the drive.
    pub fn map_pages(&self) -> u32 {
        self.drive.ftl.logical_slots.div_ceil(SLOTS_PER_TRANSLATION_PAGE)
    }
}

/// Leaves a drive a share of its cores. A controller takes in as much less as it has fewer of them.
fn shrink_cores(drive: &mut DriveConfig, share: f64) {
    let all = drive.cores;
    drive.cores = ((f64::from(all) * share) as u32).max(1);
    let interval = &mut drive.firmware.command_interval;
    *interval = *interval * u64::from(all) / u64::from(drive.cores);
}

impl JbofConfig {
    /// The drive that all are where no models are given.
    pub fn model(&self) -> DriveModel {
        DriveModel {
            drive: self.drive,
            overwrites: self.overwrites,
            shrunk_cores: self.shrunk_cores,
            shrunk_memory: self.shrunk_memory,
            core_power: self.core_power,
            dram_picojoules_per_bit: self.dram_picojoules_per_bit,
            link_picojoules_per_bit: self.link_picojoules_per_bit,
        }
    }

    /// A drive as the design builds it.
    pub fn placed(&self, model: &DriveModel) -> DriveConfig {
        let pages = model.map_pages();
        let mut drive = model.drive;
        // Data leaves no faster than the link takes it: the DMA engine paces what the link carries.
        let link = Link::new(self.fabric.link_rate).payload_rate();
        drive.read_rate = drive.read_rate.min(link);
        drive.write_rate = drive.write_rate.min(link);
        drive.segment_pages = self.harvest.pages_per_segment;
        drive.log_records = self.harvest.log_records;
        drive.firmware.cycles_per_command += self.chain.on_drive(self.design == Design::Oc);
        match self.design {
            Design::Conv => drive.mapping_cache_pages = drive.mapping_cache_pages.min(pages),
            Design::Oc => {
                // A host's DRAM is shared by all its drives, also the idle ones. [D] sheet xbof §5
                let share = self.host.memory.get() / u64::from(self.drives_per_host());
                let held = share / u64::from(SLOTS_PER_TRANSLATION_PAGE * 4);
                drive.mapping_cache_pages = u32::try_from(held).unwrap_or(u32::MAX).min(pages);
                drive.host_map = Some(self.complete_latency());
                // Its firmware is on the host; one core is left for the data-end ([A]: "minimal" in the source).
                drive.cores = 1;
                drive.firmware = FirmwareCost {
                    cycles_per_command: 0,
                    cycles_per_slice: 0,
                    stall_per_slice: SimSpan::ZERO,
                    cycles_per_moved_slice: 0,
                    command_interval: SimSpan::ZERO,
                };
            }
            Design::Shrunk | Design::Vh | Design::VhIdeal | Design::ProcH | Design::Xbof => {
                shrink_cores(&mut drive, model.shrunk_cores);
                let kept = ((f64::from(pages) * model.shrunk_memory) as u32).max(1);
                drive.mapping_cache_pages = drive.mapping_cache_pages.min(kept);
            }
        }
        drive
    }

    /// The model of each drive: `models`, or the common one where none are given.
    ///
    /// Errors: not one for each drive, a drive that cannot be, virtual drives over unequal ones.
    pub(super) fn models(&self, models: Vec<DriveModel>) -> Result<Vec<DriveModel>, JbofError> {
        if models.is_empty() {
            return Ok(vec![self.model(); self.drives as usize]);
        }
        if models.len() != self.drives as usize {
            let (value, exact) = (models.len() as u64, u64::from(self.drives));
            return Err(JbofError::Range { name: "drive models", value, least: exact, most: exact });
        }
        for model in &models {
            self.placed(model).validate()?;
        }
        // A borrowed place of a virtual drive has the same address in the lender.
        let shape = |model: &DriveModel| (model.drive.ftl.logical_slots, model.drive.nand.geometry.page_bytes);
        if self.design.is_virtual() && models.iter().any(|model| shape(model) != shape(&models[0])) {
            return Err(JbofError::UnequalVirtual);
        }
        Ok(models)
    }
}

#[cfg(test)]
mod tests {
    use super::super::chain::{ChainConfig, Placement};
    use super::super::small;
    use super::*;

    #[test]
    fn services_cost_cycles_where_they_run() {
        for design in [Design::Conv, Design::Xbof, Design::Oc] {
            let none = small::config(design);
            let with = |placement| JbofConfig { chain: ChainConfig { services: 3, cycles: 500, placement }, ..none };
            let firmware = |config: &JbofConfig| config.placed(&config.model()).firmware.cycles(1);
            let host = |config: &JbofConfig| config.host_time(&config.drive.firmware, 1);
            let on_host = with(Placement::Host);
            assert_eq!(firmware(&on_host), firmware(&none));
            assert_eq!(host(&on_host), host(&none) + none.host.clock.span_of(1500), "{design:?}");
            let on_drive = with(Placement::Drive);
            let moved = if design == Design::Oc { 0 } else { 1500 };
            assert_eq!(firmware(&on_drive), firmware(&none) + moved);
            assert_eq!(host(&on_drive), host(&none) + none.host.clock.span_of(1500 - moved), "{design:?}");
        }
    }
}
