// SHA-256 against the vectors of FIPS 180-4, and the law that parts do not matter.
#include "helve/support/sha256.h"

#include <gtest/gtest.h>

namespace helve {
namespace {

TEST(Sha256, PublishedVectors) {
  EXPECT_EQ(to_hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(to_hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(to_hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(to_hex(sha256(std::string(1000000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PartsDoNotMatterAndFieldsKeepTheirBorders) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  for (size_t first : {0u, 1u, 55u, 56u, 63u, 64u, 65u, 128u, 299u}) {
    Sha256 parts;
    parts.add(std::string_view(text).substr(0, first));
    parts.add(std::string_view(text).substr(first));
    EXPECT_EQ(parts.finish(), sha256(text)) << first;
  }
  Sha256 left, right;
  left.add_field("ab");
  left.add_field("c");
  right.add_field("a");
  right.add_field("bc");
  EXPECT_NE(left.finish(), right.finish());
}

}  // namespace
}  // namespace helve
