// A folder that nobody else can write to. Cache entries are loaded as code; a digest detects damage, but whoever can
// write an entry can write its digest.
#pragma once

#include <string>

namespace helve::runtime {

/// A descriptor that closes itself.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : number_(other.number_) { other.number_ = -1; }
  Descriptor& operator=(Descriptor&&) = delete;
  explicit operator bool() const { return number_ >= 0; }
  int operator*() const { return number_; }

 private:
  int number_ = -1;
};

struct OpenFolder {
  Descriptor folder;   ///< of the directory, or empty
  std::string reason;  ///< why it is empty; no reason if there is no such folder
};

/// Opens `path`, and creates it (0700) if `create`. It and every folder above it must belong to this user or to root,
/// and others must not be able to write to them, except to shared folders with the sticky bit (/tmp) above it. Links
/// are resolved first, so that what is checked is what is opened.
OpenFolder open_trusted_folder(const std::string& path, bool create);

}  // namespace helve::runtime
