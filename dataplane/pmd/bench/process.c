/* SPDX-License-Identifier: Apache-2.0 */
/* Starting programs, talking to them, and ending them. */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

#define STEP_US 5000
#define ANSWER_S 5.0
#define MAX_CHILDREN 8

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

static _Noreturn void become(const struct command *command, int input, int output)
{
	cpu_set_t set;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CPU_ZERO(&set);
	if (command->cpu >= 0) {
		CPU_SET(command->cpu, &set);
		sched_setaffinity(0, sizeof(set), &set);
	}
	dup2(input, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	execvp(command->words[0], (char *const *)command->words);
	fprintf(stderr, "%s: %s\n", command->words[0], strerror(errno));
	_exit(127);
}

struct process process_start(const struct command *command, const char *log)
{
	struct process p = {0};
	int fd, ends[2];

	snprintf(p.log, sizeof(p.log), "%s", log);
	fd = open(log, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0 || pipe2(ends, O_CLOEXEC) < 0)
		die(log);
	p.pid = fork();
	if (p.pid < 0)
		die("fork");
	if (p.pid == 0)
		become(command, ends[0], fd);
	close(fd);
	close(ends[0]);
	p.input = ends[1];
	return p;
}

size_t process_logged(const struct process *p)
{
	struct stat s;

	return stat(p->log, &s) == 0 ? (size_t)s.st_size : 0;
}

char *process_log(const struct process *p, size_t from)
{
	FILE *f = fopen(p->log, "r");
	char *text = NULL;
	size_t size = 0;

	if (f) {
		if (fseek(f, (long)from, SEEK_SET) < 0 || (getdelim(&text, &size, 0, f) < 0 && text))
			*text = 0;
		fclose(f);
	}
	return text ? text : calloc(1, 1);
}

static int ended(struct process *p)
{
	if (p->pid && waitpid(p->pid, NULL, WNOHANG) == p->pid) {
		p->pid = 0;
		close(p->input);
	}
	return p->pid == 0;
}

/* 0, and the number behind the label, once all of it is there. */
static int find(const struct process *p, size_t from, const char *label, double *value)
{
	char *log = process_log(p, from), *at = strstr(log, label);
	int ret = -1;

	if (at && (!value || strchr(at, '\n'))) {
		if (value)
			*value = strtod(at + strlen(label), NULL);
		ret = 0;
	}
	free(log);
	return ret;
}

int process_find(struct process *p, size_t from, const char *label, double *value, double seconds)
{
	const uint64_t end = clock_ns() + (uint64_t)(seconds * 1e9);

	do {
		if (find(p, from, label, value) == 0)
			return 0;
		usleep(STEP_US);
	} while (!ended(p) && clock_ns() < end);
	return -1;
}

int process_says(struct process *p, size_t from, const char *text, double seconds)
{
	return process_find(p, from, text, NULL, seconds);
}

int process_ask(struct process *p, const char *line, const char *label, double *value)
{
	size_t from = process_logged(p), n = strlen(line);

	if (ended(p) || write(p->input, line, n) != (ssize_t)n)
		return -1;
	return label ? process_find(p, from, label, value, ANSWER_S) : 0;
}

/* What a process has started, from whichever of its threads (a Go program's is any): the pids, at most n; returns how many. */
static unsigned children(pid_t pid, pid_t *pids, unsigned n)
{
	char path[64];
	unsigned found = 0;
	glob_t threads = {0};

	snprintf(path, sizeof(path), "/proc/%d/task/*/children", pid);
	if (glob(path, GLOB_NOSORT, NULL, &threads) == 0)
		for (size_t i = 0; i < threads.gl_pathc; i++) {
			FILE *f = fopen(threads.gl_pathv[i], "r");

			while (f && found < n && fscanf(f, "%d", &pids[found]) == 1)
				found++;
			if (f)
				fclose(f);
		}
	globfree(&threads);
	return found;
}

static void signal_tree(pid_t pid, int signal)
{
	pid_t pids[MAX_CHILDREN];
	unsigned n = children(pid, pids, MAX_CHILDREN);

	kill(pid, signal);
	for (unsigned i = 0; i < n; i++)
		signal_tree(pids[i], signal);
}

void process_signal(const struct process *p, int signal)
{
	if (p->pid)
		signal_tree(p->pid, signal);
}

pid_t process_innermost(const struct process *p)
{
	pid_t pid = p->pid, pids[MAX_CHILDREN];
	unsigned n;

	while ((n = children(pid, pids, MAX_CHILDREN)) > 0)
		pid = pids[n - 1]; /* what a script starts first serves what it starts last */
	return pid;
}

void process_wait(struct process *p, double seconds)
{
	const uint64_t end = clock_ns() + (uint64_t)(seconds * 1e9);

	while (!ended(p)) {
		if (clock_ns() > end) {
			process_end(p);
			return;
		}
		usleep(STEP_US);
	}
}

void process_end(struct process *p)
{
	if (ended(p))
		return;
	kill(p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
	p->pid = 0;
	close(p->input);
}
