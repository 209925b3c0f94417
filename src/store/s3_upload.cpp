// SPDX-License-Identifier: Apache-2.0
#include "store/s3_upload.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"

#include "store/s3_xml.hpp"

#include <utility>

namespace trireme::store {

S3Upload::S3Upload(S3Store& store, std::string name) : store_(store), name_(std::move(name)) {
  const auto response = store_.demand({"POST", name_, {{"uploads", ""}}}, "begin to write");
  id_ = document_of(response.text).child("InitiateMultipartUploadResult").child_value("UploadId");
  if (id_.empty()) store_.refuse("begin to write", name_, response);
}

S3Upload::~S3Upload() {
  if (finished_) return;
  try {
    store_.perform({"DELETE", name_, {{"uploadId", id_}}});
  } catch (const std::exception& error) {
    base::log::local::warning("store", "what was written of '{}' stays: {}", store_.url_of(name_),
                              error.what());
  }
}

void S3Upload::write(std::size_t number, std::span<const std::byte> bytes) {
  TRIREME_EXPECT(number < max_parts && bytes.size() <= part_bytes, "a part of an upload");
  const auto part = base::format("{}", number + 1);
  const auto response =
      store_.demand({"PUT", name_, {{"partNumber", part}, {"uploadId", id_}}, {}, bytes}, "write");
  const std::lock_guard lock(mutex_);
  tags_[number] = response.header("etag");
  bytes_ += bytes.size();
}

void S3Upload::finish() {
  pugi::xml_document document;
  auto list = document.append_child("CompleteMultipartUpload");
  for (const auto& [number, tag] : tags_) {
    auto part = list.append_child("Part");
    part.append_child("PartNumber").text().set(static_cast<unsigned>(number + 1));
    part.append_child("ETag").text().set(tag.c_str());
  }
  const auto text = text_of(document);
  const auto response = store_.perform({"POST", name_, {{"uploadId", id_}}, {}, bytes_of(text)});
  // Success is not known when the answer begins: its text may be an error's.
  const auto result = document_of(response.text).child("CompleteMultipartUploadResult");
  finished_ = (response.ok() && !result.empty()) || has_object();
  if (!finished_) store_.refuse("finish", name_, response);
}

bool S3Upload::has_object() {
  try {
    return store_.size(name_) == bytes_;
  } catch (const StoreError&) {
    return false;  // the answer to the upload's end is the one to report
  }
}

}  // namespace trireme::store
