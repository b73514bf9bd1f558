/* SPDX-License-Identifier: Apache-2.0 */
/* Files for tests. */
#include "files.h"

#include <string.h>
#include <unistd.h>

static char path[64];

void test_failed(void)
{
	exit(1);
}

void test_no_file(void)
{
	if (path[0])
		unlink(path);
	path[0] = '\0';
}

const char *test_file(const char *text)
{
	int fd;

	if (!path[0])
		atexit(test_no_file); /* also when a check fails */
	test_no_file();
	strcpy(path, "/tmp/dray-vnf-test-XXXXXX");
	fd = mkstemp(path);
	CHECK(fd >= 0);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	return path;
}
