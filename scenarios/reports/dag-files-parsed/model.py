"""What a pipeline file holds, after it was parsed"""


class Task:
    def __init__(self, pipeline, fields):
        self.pipeline = pipeline
        self.name, self.command, self.docs = fields["name"], fields["command"], fields["docs"]
        self.upstream, self.downstream = [], []


class Pipeline:
    def __init__(self, document):
        self.name, self.schedule = document["name"], document["schedule"]
        self.tasks = {fields["name"]: Task(self, fields) for fields in document["tasks"]}
        for fields in document["tasks"]:
            for name in fields["upstream"]:
                self.tasks[fields["name"]].upstream.append(self.tasks[name])
                self.tasks[name].downstream.append(self.tasks[fields["name"]])

    def roots(self):
        return [task.name for task in self.tasks.values() if not task.upstream]
