//! Merges of levels.

use super::error::LsmError;
use super::table::Table;
use super::tree::Lsm;
use crate::files::Files;

impl Lsm {
    /// Merges levels that have too much, from the first on.
    pub(super) fn merge_while_needed(&mut self, files: &mut impl Files) -> Result<(), LsmError> {
        if self.levels[0].len() >= self.config.level_0_files {
            let above = std::mem::take(&mut self.levels[0]);
            self.merge(files, above, 1)?;
        }
        let mut level = 1;
        while level < self.levels.len() {
            let bytes: u64 = self.levels[level].iter().map(Table::bytes).sum();
            if bytes <= self.target(level) {
                level += 1;
                continue;
            }
            let chosen = self.least_overlapping(level);
            let above = vec![self.levels[level].remove(chosen)];
            self.merge(files, above, level + 1)?;
        }
        Ok(())
    }

    /// The table of a level that overlaps least with the next level for its size. Source: [X] RocksDB's default choice.
    fn least_overlapping(&self, level: usize) -> usize {
        let below = self.levels.get(level + 1).map_or(&[][..], Vec::as_slice);
        let overlap = |table: &Table| {
            let from = below.partition_point(|other| other.most < table.least);
            let upto = below.partition_point(|other| other.least <= table.most);
            let bytes: u64 = below[from..upto.max(from)].iter().map(Table::bytes).sum();
            bytes * 1024 / table.bytes().max(1)
        };
        let tables = self.levels[level].iter().enumerate();
        tables.min_by_key(|(_, table)| overlap(table)).map_or(0, |(index, _)| index)
    }

    /// Merges tables, the newest last, into a level.
    fn merge(&mut self, files: &mut impl Files, above: Vec<Table>, level: usize) -> Result<(), LsmError> {
        if self.levels.len() <= level {
            self.levels.push(Vec::new());
        }
        let least = above.iter().map(|table| table.least).min().unwrap_or(0);
        let most = above.iter().map(|table| table.most).max().unwrap_or(0);
        let into = &mut self.levels[level];
        let from = into.partition_point(|table| table.most < least);
        let upto = into.partition_point(|table| table.least <= most).max(from);
        let below: Vec<Table> = into.drain(from..upto).collect();
        // One table that meets nothing moves down as it is.
        if above.len() == 1 && below.is_empty() {
            into.splice(from..from, above);
            return Ok(());
        }
        let record_bytes = self.config.record_bytes as usize;
        let mut records = Vec::new();
        for table in below.iter().chain(&above) {
            table.read_all(files, record_bytes, &mut records)?;
            self.counters.merged_in_bytes += table.bytes();
        }
        // The newest version of a key stays.
        records.sort_unstable_by_key(|&(key, version)| (key, std::cmp::Reverse(version)));
        records.dedup_by_key(|record| record.0);
        let per_file = (self.config.file_bytes as usize / super::table::BLOCK) * (super::table::BLOCK / record_bytes);
        let mut written = Vec::new();
        for part in records.chunks(per_file.max(1)) {
            let file = self.take_number();
            let table = Table::write(files, file, part, record_bytes, self.config.bits_per_key)?;
            self.counters.merged_out_bytes += table.bytes();
            written.push(table);
        }
        self.levels[level].splice(from..from, written);
        for table in above.into_iter().chain(below) {
            files.delete(table.file)?;
            self.numbers_free.push(table.file);
        }
        self.counters.merges += 1;
        Ok(())
    }
}
