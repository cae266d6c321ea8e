// A folder that nobody else can write into. What stands in the cache is loaded as code; a digest finds damage, but
// whoever can write the entry can write its digest.
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
  Descriptor folder;   ///< of the directory, or of nothing
  std::string reason;  ///< why it is of nothing; empty where there is no such folder
};

/// Opens `path`, and makes it (0700) if `create`. It and every folder above it belong to this user or to root, and
/// others may write into none of them, shared ones with the sticky bit (/tmp) above it aside. Links on the way are
/// followed first, so that what is checked is what is opened.
OpenFolder open_trusted_folder(const std::string& path, bool create);

}  // namespace helve::runtime
