/* build.h - the architecture and kind of this build, as strings. */
#ifndef MO_BASE_BUILD_H
#define MO_BASE_BUILD_H

#if defined(__x86_64__)
#    define MO_BUILD_ARCH "amd64"
#elif defined(__aarch64__)
#    define MO_BUILD_ARCH "arm64"
#else
#    define MO_BUILD_ARCH "unknown machine"
#endif

#if defined(__has_feature)
#    if __has_feature(address_sanitizer)
#        define MO_BUILD_SANITIZED 1
#    endif
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(MO_BUILD_SANITIZED)
#    define MO_BUILD_SANITIZED 1
#endif

#if defined(MO_BUILD_SANITIZED)
#    define MO_BUILD_KIND "sanitizers"
#elif defined(__OPTIMIZE__)
#    define MO_BUILD_KIND "release"
#else
#    define MO_BUILD_KIND "debug"
#endif

#endif
