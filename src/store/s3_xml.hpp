// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pugixml.hpp>

#include <cstddef>
#include <span>
#include <string>

namespace trireme::store {

/// The root of an XML answer; empty if it is none.
inline pugi::xml_document document_of(const std::string& text) {
  pugi::xml_document document;
  document.load_buffer(text.data(), text.size());
  return document;
}

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace trireme::store
