//! RocksDB's options, in one place, each with its reason.

use mailer_core::{Error, Result};
use rocksdb::{BlockBasedOptions, Cache, DBCompressionType, Env, LogLevel, Options, WriteBufferManager};

/// What a user can set.
#[derive(Clone, Debug)]
pub(crate) struct Tuning {
    pub(crate) block_cache_bytes: usize,
    pub(crate) write_buffer_bytes: usize,
    pub(crate) background_jobs: i32,
    pub(crate) compress: bool,
}

impl Default for Tuning {
    fn default() -> Self {
        Self { block_cache_bytes: 256 << 20, write_buffer_bytes: 16 << 20, background_jobs: 2, compress: true }
    }
}

impl Tuning {
    /// Options for the database and for the table files that it will ingest.
    pub(crate) fn options(&self) -> Result<Options> {
        let mut options = Options::default();
        let cache = Cache::new_lru_cache(self.block_cache_bytes);
        self.set_memory(&mut options, &cache);
        self.set_compaction(&mut options)?;
        set_tables(&mut options, &cache);
        set_opening(&mut options);
        Ok(options)
    }

    /// One budget for the whole process. Memtables stay empty, so the write buffers are small change.
    fn set_memory(&self, options: &mut Options, cache: &Cache) {
        let manager =
            WriteBufferManager::new_write_buffer_manager_with_cache(self.write_buffer_bytes, false, cache.clone());
        options.set_write_buffer_manager(&manager);
        options.set_write_buffer_size(self.write_buffer_bytes);
    }

    /// Compaction is patient: most checkpoints add one file, and the workers come first.
    fn set_compaction(&self, options: &mut Options) -> Result<()> {
        let mut env = Env::new().map_err(|error| Error::internal("RocksDB's environment").caused_by(error))?;
        env.lower_thread_pool_cpu_priority();
        env.lower_thread_pool_io_priority();
        options.set_env(&env);
        options.set_max_background_jobs(self.background_jobs);
        options.set_level_zero_file_num_compaction_trigger(8);
        options.set_target_file_size_base(32 << 20);
        options.set_max_bytes_for_level_base(128 << 20);
        options.set_compression_type(if self.compress { DBCompressionType::Lz4 } else { DBCompressionType::None });
        Ok(())
    }
}

fn set_tables(options: &mut Options, cache: &Cache) {
    let mut tables = BlockBasedOptions::default();
    tables.set_block_cache(cache);
    tables.set_bloom_filter(10.0, false);
    tables.set_format_version(6);
    options.set_block_based_table_factory(&tables);
}

/// Opening reads no table file, and keeps all of them open; nothing is dumped or persisted behind our back.
fn set_opening(options: &mut Options) {
    options.create_if_missing(true);
    options.set_skip_stats_update_on_db_open(true);
    options.set_max_open_files(-1);
    options.set_max_file_opening_threads(4);
    options.set_stats_dump_period_sec(0);
    options.set_stats_persist_period_sec(0);
    options.set_log_level(LogLevel::Warn);
    options.set_keep_log_file_num(2);
    options.set_max_manifest_file_size(1 << 20); // every checkpoint copies it
}
