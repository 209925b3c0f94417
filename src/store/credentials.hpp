// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/base/result.hpp"

#include "store/signature.hpp"

namespace trireme::store {

/// Credentials for S3: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; else the
/// profile AWS_PROFILE ("default") of AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials), which
/// nobody else may read. Failures (usage) name what is missing, and never what is there.
base::Result<Credentials> find_credentials(const base::Environment& environment);

}  // namespace trireme::store
