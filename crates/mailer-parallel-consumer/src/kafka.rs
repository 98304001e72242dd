//! The binding to Kafka: a member of a consumer group, on the client `krafka`.
//!
//! Two clients make one member. The first is in the group and nothing else: it sends heartbeats, takes part in
//! rebalances, commits. The second fetches. They are apart because the group's client waits in its `poll` while a revoked
//! partition is drained, and all others must be fetched meanwhile; and because a broker answers the requests of one
//! connection in turn, so a commit would wait for a fetch that waits for records.
//!
//! | file | what |
//! |---|---|
//! | `plan`, `settings`, `client_option`, `security` | what a user sets, and what of it is wrong |
//! | `source` | the [`Source`](crate::Source): what the tasks tell, in order |
//! | `holdings` | pure: what is held, who may commit, when a revoked partition may go |
//! | `member` | the task in the group, and what it is called back with |
//! | `lookup`, `positions` | where a partition begins, and the offset map of its commit |
//! | `fetcher`, `track`, `records` | the fetching task |
//! | `commits` | the committing task |
//! | `dead_letter_topic` | dead letters as records of a topic |

mod client_option;
mod commits;
mod dead_letter_topic;
mod errors;
mod fetcher;
mod google;
mod holdings;
mod lookup;
mod member;
mod plan;
mod positions;
mod records;
mod security;
mod settings;
mod shared;
mod source;
mod track;

pub use dead_letter_topic::{DeadLetterTopic, provenance};
pub use plan::Kafka;
pub use security::{AwsKeys, Oidc, Sasl, Security, Token};
pub use settings::{Balance, GroupProtocol, Isolation, OffsetReset};
pub use source::KafkaSource;
