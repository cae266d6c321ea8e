// Where parts of the CUDA toolkit are installed.
// Wheels of pip come before toolkits of the machine: whoever installed one wants it used.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace helve::runtime::cuda {

/// The folders `of_wheels` below those of Python packages, then the folder `of_toolkit` of each toolkit in /usr/local,
/// newest first. They need not exist.
std::vector<std::filesystem::path> toolkit_folders(const std::vector<std::string>& site_packages,
                                                   const std::vector<std::string>& of_wheels,
                                                   const std::string& of_toolkit);

}  // namespace helve::runtime::cuda
