/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the tests. */
#include "support.h"

#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS 64
#define PATIENCE 60 /* s; then a child is stuck */

void (*test_clean_up)(void);
static const char *program;
static char ready_line[4096];

void test_failed(void)
{
	if (test_clean_up)
		test_clean_up();
	_exit(1);
}

void test_skip(const char *reason)
{
	fprintf(stderr, "skipped: %s\n", reason);
	if (test_clean_up)
		test_clean_up();
	_exit(77);
}

void test_program(int argc, char **argv)
{
	CHECK(argc == 2 && "usage: test PROGRAM");
	program = argv[1];
}

void test_pin(void)
{
	cpu_set_t all, one;
	int cpu = 0;

	CHECK(sched_getaffinity(0, sizeof(all), &all) == 0);
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
}

void test_needs_ip6(void)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		test_skip("this machine has no IPv6 on its loopback: sysctl "
			  "net.ipv6.conf.all.disable_ipv6=0");
	close(fd);
}

static void become(int out, const char *const *arguments, pid_t parent)
{
	char *argv[ARGUMENTS] = {(char *)(uintptr_t)program};
	unsigned n = 1;

	for (; *arguments && n + 1 < ARGUMENTS; arguments++)
		argv[n++] = (char *)(uintptr_t)*arguments;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(PATIENCE); /* survives exec */
	if (getppid() == parent && dup2(out, STDOUT_FILENO) >= 0)
		execv(program, argv);
	_exit(126);
}

struct child child_start(const char *const *arguments)
{
	struct child c;
	int ends[2];
	pid_t parent = getpid();
	char *line;

	CHECK(pipe(ends) == 0);
	c.pid = fork();
	CHECK(c.pid >= 0);
	if (c.pid == 0)
		become(ends[1], arguments, parent);
	close(ends[1]);
	c.out = fdopen(ends[0], "r");
	CHECK(c.out != NULL);
	line = child_line(&c);
	CHECK(line != NULL && strstr(line, "\"event\":\"ready\""));
	snprintf(ready_line, sizeof(ready_line), "%s", line);
	free(line);
	return c;
}

char *child_line(struct child *c)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t n = getline(&line, &size, c->out);

	if (n <= 0) {
		free(line);
		return NULL;
	}
	line[strcspn(line, "\n")] = '\0';
	return line;
}

void child_until(struct child *c, const char *path)
{
	double seen = 0;

	while (seen == 0) {
		char *line = child_line(c);

		CHECK(line != NULL);
		seen = json_number(line, path);
		free(line);
	}
}

int child_end(struct child *c, char **result)
{
	char *line;
	int status;

	*result = NULL;
	while ((line = child_line(c))) {
		free(*result);
		*result = line;
	}
	fclose(c->out);
	CHECK_EQ(waitpid(c->pid, &status, 0), c->pid);
	if (!WIFEXITED(status))
		fprintf(stderr, "draygen ended by signal %d\n", WTERMSIG(status));
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

char *child_result(struct child *c, int want)
{
	char *result;

	int status = child_end(c, &result);

	if (status != want)
		fprintf(stderr, "its result: %.1500s\n", result ? result : "none");
	CHECK_EQ(status, want);
	CHECK(result && strstr(result, "\"event\":\"result\""));
	return result;
}

int child_status(const char *const *arguments)
{
	char *argv[ARGUMENTS] = {(char *)(uintptr_t)program};
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	for (unsigned i = 0; arguments[i] && i + 2 < ARGUMENTS; i++)
		argv[i + 1] = (char *)(uintptr_t)arguments[i];
	if (pid == 0) {
		alarm(PATIENCE);
		CHECK(freopen("/dev/null", "w", stderr) && freopen("/dev/null", "w", stdout));
		execv(program, argv);
		_exit(126);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static const char *find(const char *line, const char *name, size_t length)
{
	char key[64];
	const char *at;

	snprintf(key, sizeof(key), "\"%.*s\":", (int)length, name);
	at = strstr(line, key);
	if (!at) {
		fprintf(stderr, "no %s in %s\n", key, line);
		test_failed();
	}
	return at + strlen(key);
}

/* The dot of "p99.9" is part of a name: only what comes before a letter is an object's. */
double json_number(const char *line, const char *path)
{
	const char *dot = strchr(path, '.');

	if (dot && dot[1] >= 'a') {
		line = find(line, path, (size_t)(dot - path));
		path = dot + 1;
	}
	line = find(line, path, strlen(path));
	return strncmp(line, "null", 4) == 0 ? -1 : strtod(line, NULL);
}

bool json_true(const char *line, const char *name)
{
	return strncmp(find(line, name, strlen(name)), "true", 4) == 0;
}

struct child sink_start(const char *const *arguments, char to[64])
{
	struct child c = child_start(arguments);
	const char *at = find(ready_line, "port", 4);

	CHECK_EQ(sscanf(at, "\"udp:%63[^\"]\"", to), 1);
	return c;
}
