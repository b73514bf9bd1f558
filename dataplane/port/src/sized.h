/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structs that begin with their size, so that an application and a library of different versions
 * work together.
 */
#ifndef DRAY_SIZED_H
#define DRAY_SIZED_H

#include <stddef.h>

#define SIZED_MAX 4096 /* bytes: a larger size is one that was never set */

/*
 * Copy the caller's options to `own`, of `known` bytes; fields that the caller's struct lacks keep
 * their value. Bytes beyond `known` must be 0, which means the default of an option that this
 * library does not have. -EINVAL too small; -E2BIG over SIZED_MAX, or an unknown option is set.
 */
int sized_read(void *own, size_t known, const void *given);

/*
 * Copy `own`, of `known` bytes, to the caller's struct, which keeps its size. Fields that this
 * library does not have become 0. -EINVAL too small; -E2BIG over SIZED_MAX.
 */
int sized_write(void *given, const void *own, size_t known);

#endif
