/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of dray-vnf have in common: checks, and files for the program to read. */
#ifndef VNF_TEST_FILES_H
#define VNF_TEST_FILES_H

#include "check.h" /* of libdray's tests */

/*
 * Write a file for the program to read; its name is in a static buffer, and `test_no_file` removes
 * it.
 */
const char *test_file(const char *text);
void test_no_file(void);

#endif
