/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (RFC 3720, appendix B.4), by the CPU's instruction if it has one. */
#ifndef GEN_CRC32C_H
#define GEN_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(const void *data, size_t length);

/* The same without the instruction: the reference for tests. */
uint32_t crc32c_portable(const void *data, size_t length);

#endif
