/* SPDX-License-Identifier: Apache-2.0 */
/* Starting and ending programs. */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

#define STEP_US 20000
#define GRACE_S 5.0

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
	exit(1);
}

void command_add(struct command *c, const char *format, ...)
{
	char *text = c->text + c->used, *word, *rest;
	va_list list;
	int n;

	va_start(list, format);
	n = vsnprintf(text, sizeof(c->text) - c->used, format, list);
	va_end(list);
	if (n < 0 || (size_t)n >= sizeof(c->text) - c->used)
		die("command line");
	c->used += (unsigned)n + 1;
	for (word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		if (c->n == MAX_WORDS)
			die("command line");
		c->words[c->n++] = word;
	}
	c->words[c->n] = NULL;
}

void command_word(struct command *c, const char *word)
{
	int n = snprintf(c->text + c->used, sizeof(c->text) - c->used, "%s", word);

	if (n < 0 || (size_t)n >= sizeof(c->text) - c->used || c->n == MAX_WORDS)
		die("command line");
	c->words[c->n++] = c->text + c->used;
	c->words[c->n] = NULL;
	c->used += (unsigned)n + 1;
}

struct process process_start(const struct command *command, const char *log)
{
	struct process p = {0};
	int fd;

	snprintf(p.log, sizeof(p.log), "%s", log);
	fd = open(log, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		die(log);
	p.pid = fork();
	if (p.pid < 0)
		die("fork");
	if (p.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
		execvp(command->words[0], (char *const *)command->words);
		fprintf(stderr, "%s: %s\n", command->words[0], strerror(errno));
		_exit(127);
	}
	close(fd);
	return p;
}

char *process_log(const struct process *p)
{
	FILE *f = fopen(p->log, "r");
	char *text = NULL;
	size_t size = 0;

	if (f) {
		if (getdelim(&text, &size, 0, f) < 0 && text)
			*text = 0;
		fclose(f);
	}
	return text ? text : calloc(1, 1);
}

static int ended(struct process *p, int *status)
{
	if (p->pid && waitpid(p->pid, status, WNOHANG) == p->pid)
		p->pid = 0;
	return p->pid == 0;
}

int process_says(struct process *p, const char *text, double seconds)
{
	const uint64_t end = clock_ns() + (uint64_t)(seconds * 1e9);
	int status;

	do {
		char *log = process_log(p);
		int found = strstr(log, text) != NULL;

		free(log);
		if (found)
			return 0;
		usleep(STEP_US);
	} while (!ended(p, &status) && clock_ns() < end);
	return -1;
}

int process_wait(struct process *p, double seconds)
{
	const uint64_t end = clock_ns() + (uint64_t)(seconds * 1e9);
	int status = 0;

	if (!p->pid)
		return -1;
	while (!ended(p, &status)) {
		if (clock_ns() > end) {
			kill(p->pid, SIGKILL);
			waitpid(p->pid, &status, 0);
			p->pid = 0;
			break;
		}
		usleep(STEP_US);
	}
	return status;
}

int process_end(struct process *p)
{
	if (!p->pid)
		return -1;
	kill(p->pid, SIGINT);
	return process_wait(p, GRACE_S);
}
