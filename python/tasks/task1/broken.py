"""Train a linear two-class model on sensor readings with momentum SGD."""

import torch
import torch.nn.functional as F
import workbench

EPOCHS = 15
BATCH = 256

data = workbench.load_data()
config = workbench.load_config()
torch.manual_seed(config["seed"])

readings = torch.from_numpy(data["readings"])
labels = torch.from_numpy(data["labels"])

model = torch.nn.Linear(readings.shape[1], 1)
optimizer = torch.optim.SGD(model.parameters(), lr=5.0, momentum=0.9)

losses = []
weights = []
biases = []
for _ in range(EPOCHS):
    total = 0.0
    order = torch.randperm(len(readings))
    for batch in order.split(BATCH):
        loss = F.binary_cross_entropy_with_logits(model(readings[batch]).squeeze(1), labels[batch])
        optimizer.step()
        optimizer.zero_grad()
        loss.backward()
        total += loss.item() * len(batch)
    losses.append(total / len(readings))
    weights.append(model.weight.detach().clone())
    biases.append(model.bias.detach().clone())

print("##METRICS_START##")
print("LOSSES:[" + ", ".join(f"{loss:.6f}" for loss in losses) + "]")
print("##METRICS_END##")

workbench.save_arrays("epochs", weight=torch.stack(weights), bias=torch.stack(biases))
workbench.save_weights("weights", model)
