// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pugixml.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <utility>

namespace trireme::store {

/// The root of an XML answer; empty if it is none.
inline pugi::xml_document document_of(const std::string& text) {
  pugi::xml_document document;
  document.load_buffer(text.data(), text.size());
  return document;
}

/// The document in one line.
inline std::string text_of(const pugi::xml_document& document) {
  struct Writer : pugi::xml_writer {
    void write(const void* data, std::size_t size) override {
      text.append(static_cast<const char*>(data), size);
    }
    std::string text;
  } writer;
  document.save(writer, "", pugi::format_raw | pugi::format_no_declaration);
  return std::move(writer.text);
}

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace trireme::store
