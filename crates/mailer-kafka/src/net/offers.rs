//! What a broker offers: versions of requests, and features of the cluster. Pure.

use super::Api;
use crate::client::{Cause, Failure};
use kafka_protocol::messages::ApiVersionsResponse;
use std::collections::HashMap;

/// The answer to ApiVersions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offers {
    versions: HashMap<i16, (i16, i16)>,
    /// Finalized `transaction.version`; 0 where the cluster knows none.
    pub(crate) transaction_version: i16,
}

impl Offers {
    pub(super) fn of(response: &ApiVersionsResponse) -> Self {
        let versions = response.api_keys.iter().map(|api| (api.api_key, (api.min_version, api.max_version)));
        let finalized = response.finalized_features.iter().find(|feature| &*feature.name == "transaction.version");
        Self {
            versions: versions.collect(),
            transaction_version: finalized.map_or(0, |feature| feature.max_version_level),
        }
    }

    /// The highest version that both sides know; `peer` is named in the error.
    pub(crate) fn version<R: Api>(&self, peer: &str) -> Result<i16, Failure> {
        let (low, high) = R::RANGE.into_inner();
        let Some((min, max)) = self.versions.get(&R::KEY).copied() else {
            return Err(Failure::new(Cause::Unsupported, format!("{peer} does not know {}", R::NAME)));
        };
        let version = high.min(max);
        if version >= low.max(min) {
            return Ok(version);
        }
        let message = format!(
            "{peer} offers {} versions {min} to {max}, this program needs one of {low} to {high}: use a newer broker or program",
            R::NAME
        );
        Err(Failure::new(Cause::Unsupported, message))
    }

    /// The highest version of a request that the broker knows; `None` where it does not know the request.
    pub(crate) fn highest<R: Api>(&self) -> Option<i16> {
        self.versions.get(&R::KEY).map(|(_, max)| *max)
    }
}
