// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace trireme::base {

/// True if fsync of a folder failed because the file system does not support it (SMB, some FUSE).
/// Nothing more can be done there, and files themselves are synced.
bool lacks_folder_sync(int error_number);

}  // namespace trireme::base
