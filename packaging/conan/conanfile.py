"""Conan 2 recipe. From the source tree: conan create packaging/conan"""

import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain
from conan.tools.files import copy, load

required_conan_version = ">=2.0"


class StowageConan(ConanFile):
    name = "stowage"
    description = "GPU buffers of a forward pass, declared once as a plain struct"
    license = "MIT"
    topics = ("gpu", "cuda", "memory", "layout", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"system_boost": [True, False]}
    default_options = {"system_boost": False}
    options_description = {"system_boost": "Boost 1.81 or later is on the machine: require no package of it"}

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "..", "..", "include", "stowage", "version.hpp"))
        self.version = ".".join(
            re.search(rf"STOWAGE_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH"))

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*"):
            copy(self, pattern, root, self.export_sources_folder)

    def requirements(self):
        if not self.options.system_boost:
            self.requires("boost/[>=1.81 <2]", options={"header_only": True}, transitive_headers=True)

    def validate(self):
        if self.settings.get_safe("compiler.cppstd"):
            check_min_cppstd(self, 20)

    def package_id(self):
        self.info.clear()

    def generate(self):
        toolchain = CMakeToolchain(self)
        for programs in ("TESTS", "EXAMPLES", "BENCHMARKS"):
            toolchain.cache_variables[f"STOWAGE_BUILD_{programs}"] = False
        # The package has the headers of the CUDA part either way; stowage::cuda appears in projects that find CUDA.
        toolchain.cache_variables["STOWAGE_CUDA"] = "OFF"
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        CMake(self).configure()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        # The installation's own package configuration, which knows stowage::cuda.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.set_property("pkg_config_name", "stowage")
        self.cpp_info.builddirs = [os.path.join("share", "cmake", "stowage")]
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        if not self.options.system_boost:
            self.cpp_info.requires = ["boost::headers"]
