"""Train a two-class model on a stream of daily shards of sensor readings."""

import torch
import workbench

PASSES = 2
BATCH = 32

data = workbench.load_data()
config = workbench.load_config()
torch.manual_seed(config["seed"])

days = torch.from_numpy(data["readings"])
labels = torch.from_numpy(data["labels"])

model = torch.nn.Linear(days.shape[2], 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)

losses = []
weights = []
biases = []
for day in range(len(days)):
    total = 0.0
    for _ in range(PASSES):
        for batch in torch.randperm(days.shape[1]).split(BATCH):
            y = labels[day, batch]
            p = torch.sigmoid(model(days[day, batch]).squeeze(1))
            log_p = torch.log(p)
            log_not_p = torch.log(1 - p)
            loss = -(y * log_p + (1 - y) * log_not_p).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
    losses.append(total / (PASSES * days.shape[1]))
    weights.append(model.weight.detach().clone())
    biases.append(model.bias.detach().clone())

print("##METRICS_START##")
print("LOSSES:[" + ", ".join(f"{loss:.6f}" for loss in losses) + "]")
print("##METRICS_END##")

workbench.save_arrays("days", weight=torch.stack(weights), bias=torch.stack(biases))
workbench.save_weights("weights", model)
