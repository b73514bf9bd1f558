/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of draygen have in common. */
#ifndef GEN_TEST_SUPPORT_H
#define GEN_TEST_SUPPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "check.h" /* of libdray's tests */

/* Called by a test that fails: removes what it would leave behind. */
extern void (*test_clean_up)(void);
_Noreturn void test_skip(const char *reason);

/* The program under test, started. It dies with the test. */
struct child {
	pid_t pid;
	FILE *out;
};

/*
 * Keep this process and its children on one CPU: a process that moves to another overtakes, on the
 * loopback, what it sent before.
 */
void test_pin(void);

/* Where the program is: the first argument of main. */
void test_program(int argc, char **argv);

/* Skips the test if there is no IPv6. */
void test_needs_ip6(void);

/* Start draygen with these arguments (NULL ends them), and wait until it says that it is ready. */
struct child child_start(const char *const *arguments);
#define START(...) child_start((const char *const[]){__VA_ARGS__, NULL})

/* The next line that it prints, without its end; freed by the caller. NULL: no more. */
char *child_line(struct child *child);

/* Its next line in which a number (see below) is not 0. With --interval, it prints them. */
void child_until(struct child *child, const char *path);

/* Wait for the end: its exit status. `result` is its last line; freed by the caller. */
int child_end(struct child *child, char **result);

/* Run to the end: CHECKs the exit status, and returns the result. */
char *child_result(struct child *child, int status);

/* Run one that prints no ready line: its exit status. */
int child_status(const char *const *arguments);
#define STATUS(...) child_status((const char *const[]){__VA_ARGS__, NULL})

/*
 * A number of a line of JSON: "received", or "one_way.p99". -1 if it is null; a missing one
 * fails the test. Names are unique within their object, and those of the outer object come before
 * objects that have the same.
 */
double json_number(const char *line, const char *path);
bool json_true(const char *line, const char *name);

/* The UDP address that a sink is bound to, from its "ready" line, as text for --to. */
struct child sink_start(const char *const *arguments, char to[64]);
#define SINK(to, ...) sink_start((const char *const[]){__VA_ARGS__, NULL}, to)

#endif
