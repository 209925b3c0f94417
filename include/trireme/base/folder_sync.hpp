// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace trireme::base {

/// Whether fsync of a folder failed because the file system has no such thing (SMB, some FUSE).
/// Nothing more can be done there, and files themselves are synced.
bool lacks_folder_sync(int error_number);

}  // namespace trireme::base
